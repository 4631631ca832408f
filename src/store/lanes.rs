//! Lanes and what they wait for.

use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Moment, Store, StoreError};

pub(super) const LANES: &str = "SELECT participant_id, rail_type, tenant_id, solo_sequence_id, state, \
    due_at, worker_id, pending_rows, head_outbox_id, head_sequence_id, head_attempts, head_error_code, \
    paused_at, paused_by, paused_reason, halted_by FROM outbox.lane_status($1, $2, $3, $4)";

/// Which lanes to show.
#[derive(Debug, Default)]
pub struct LaneFilter<'a> {
    pub participant_id: Option<&'a str>,
    pub rail_type: Option<&'a str>,
    /// Leave out those that are due or at work.
    pub waiting_only: bool,
    pub limit: i32,
}

/// A lane that has rows, is paused or is halted.
#[derive(Debug, Serialize)]
pub struct LaneStatus {
    pub participant_id: String,
    pub rail_type: String,
    pub tenant_id: Option<Uuid>,
    /// The one row of a lane of its own, on a rail without order; 0 elsewhere.
    pub solo_sequence_id: i64,
    /// halted, paused, lease expired, delayed, leased or due.
    pub state: String,
    pub due_at: Option<Moment>,
    pub worker_id: Option<String>,
    pub pending_rows: i64,
    pub head_outbox_id: Option<Uuid>,
    pub head_sequence_id: Option<i64>,
    pub head_attempts: Option<i32>,
    pub head_error_code: Option<String>,
    pub paused_at: Option<Moment>,
    pub paused_by: Option<String>,
    pub paused_reason: Option<String>,
    /// The FAILED row for which it waits.
    pub halted_by: Option<Uuid>,
}

impl Store {
    pub async fn lanes(&self, filter: &LaneFilter<'_>) -> Result<Vec<LaneStatus>, StoreError> {
        let rows = self
            .client
            .query_typed(
                LANES,
                &[
                    (&filter.participant_id, Type::TEXT),
                    (&filter.rail_type, Type::TEXT),
                    (&filter.waiting_only, Type::BOOL),
                    (&filter.limit, Type::INT4),
                ],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}

pub(super) fn read(row: &Row) -> Result<LaneStatus, StoreError> {
    Ok(LaneStatus {
        participant_id: row.try_get(0)?,
        rail_type: row.try_get(1)?,
        tenant_id: row.try_get(2)?,
        solo_sequence_id: row.try_get(3)?,
        state: row.try_get(4)?,
        due_at: row.try_get::<_, Option<_>>(5)?.map(Moment),
        worker_id: row.try_get(6)?,
        pending_rows: row.try_get(7)?,
        head_outbox_id: row.try_get(8)?,
        head_sequence_id: row.try_get(9)?,
        head_attempts: row.try_get(10)?,
        head_error_code: row.try_get(11)?,
        paused_at: row.try_get::<_, Option<_>>(12)?.map(Moment),
        paused_by: row.try_get(13)?,
        paused_reason: row.try_get(14)?,
        halted_by: row.try_get(15)?,
    })
}
