//! FAILED rows: the dead-letter queue as an operator sees it.

use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Moment, Store, StoreError};

/// One statement for lists and single rows: what is not asked for is null.
const FAILURES: &str = "SELECT outbox_id, tenant_id, instruction_id, participant_id, sequence_id, \
    idempotency_key, rail_type, created_at, failed_at, \
    EXTRACT(epoch FROM clock_timestamp() - failed_at)::bigint, error_code, error_message, rail_code, \
    rail_reference, attempts, replay_of, dead_letter_waits, halts_lane, resolution, replay_outbox_id, \
    resolved_at, resolved_by, resolved_reason FROM outbox.outbox_failure_status \
    WHERE ($1 OR resolution IS NULL) AND ($2 IS NULL OR outbox_id = ANY ($2)) \
      AND ($3 IS NULL OR rail_type = $3) AND ($4 IS NULL OR participant_id = $4) \
      AND ($5 IS NULL OR error_code = $5) \
      AND ($6 IS NULL OR failed_at >= clock_timestamp() - make_interval(secs => $6)) \
    ORDER BY outbox_id LIMIT $7";
const PAYLOAD: &str = "SELECT payload::text, headers::text FROM outbox.payment_outbox_attempts \
    WHERE outbox_id = $1 AND state = 'FAILED'";

/// Which FAILED rows.
#[derive(Debug, Default)]
pub struct FailureFilter<'a> {
    /// Also those that were replayed or dismissed.
    pub resolved_too: bool,
    pub outbox_ids: Option<&'a [Uuid]>,
    pub rail_type: Option<&'a str>,
    pub participant_id: Option<&'a str>,
    pub error_code: Option<&'a str>,
    /// Failed within so many seconds.
    pub since_seconds: Option<f64>,
    pub limit: i64,
}

/// A FAILED row, without its payload.
#[derive(Debug, Serialize)]
pub struct FailureStatus {
    pub outbox_id: Uuid,
    pub tenant_id: Option<Uuid>,
    /// None when the ledger partition of the row is archived.
    pub instruction_id: Option<String>,
    pub participant_id: String,
    pub sequence_id: i64,
    pub idempotency_key: Option<String>,
    pub rail_type: String,
    pub created_at: Option<Moment>,
    pub failed_at: Moment,
    pub age_seconds: i64,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub rail_code: Option<String>,
    pub rail_reference: Option<String>,
    pub attempts: Option<i32>,
    pub replay_of: Option<Uuid>,
    /// Its dead letter has not been delivered yet.
    pub dead_letter_waits: bool,
    pub halts_lane: bool,
    pub resolution: Option<String>,
    pub replay_outbox_id: Option<Uuid>,
    pub resolved_at: Option<Moment>,
    pub resolved_by: Option<String>,
    pub resolved_reason: Option<String>,
}

impl Store {
    /// Oldest first.
    pub async fn failures(
        &self,
        filter: &FailureFilter<'_>,
    ) -> Result<Vec<FailureStatus>, StoreError> {
        let rows = self
            .client
            .query_typed(
                FAILURES,
                &[
                    (&filter.resolved_too, Type::BOOL),
                    (&filter.outbox_ids, Type::UUID_ARRAY),
                    (&filter.rail_type, Type::TEXT),
                    (&filter.participant_id, Type::TEXT),
                    (&filter.error_code, Type::TEXT),
                    (&filter.since_seconds, Type::FLOAT8),
                    (&filter.limit, Type::INT8),
                ],
            )
            .await?;
        rows.iter().map(read).collect()
    }

    /// Payload and headers of a FAILED row, as JSON text.
    pub async fn failed_payload(
        &self,
        outbox_id: Uuid,
    ) -> Result<Option<(String, String)>, StoreError> {
        let rows = self.client.query_typed(PAYLOAD, &[(&outbox_id, Type::UUID)]).await?;
        rows.first().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
    }
}

fn read(row: &Row) -> Result<FailureStatus, StoreError> {
    Ok(FailureStatus {
        outbox_id: row.try_get(0)?,
        tenant_id: row.try_get(1)?,
        instruction_id: row.try_get(2)?,
        participant_id: row.try_get(3)?,
        sequence_id: row.try_get(4)?,
        idempotency_key: row.try_get(5)?,
        rail_type: row.try_get(6)?,
        created_at: row.try_get::<_, Option<_>>(7)?.map(Moment),
        failed_at: Moment(row.try_get(8)?),
        age_seconds: row.try_get(9)?,
        error_code: row.try_get(10)?,
        error_message: row.try_get(11)?,
        rail_code: row.try_get(12)?,
        rail_reference: row.try_get(13)?,
        attempts: row.try_get(14)?,
        replay_of: row.try_get(15)?,
        dead_letter_waits: row.try_get(16)?,
        halts_lane: row.try_get(17)?,
        resolution: row.try_get(18)?,
        replay_outbox_id: row.try_get(19)?,
        resolved_at: row.try_get::<_, Option<_>>(20)?.map(Moment),
        resolved_by: row.try_get(21)?,
        resolved_reason: row.try_get(22)?,
    })
}
