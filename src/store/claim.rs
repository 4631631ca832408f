//! Claims rows.

use serde_json::{Map, Value, json};
use tokio_postgres::Row as SqlRow;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{StoreError, WorkerStore};
use crate::delivery::{Batch, FreeShard, Places, Row};

const CLAIM: &str = "SELECT outbox_id, lease_token, tenant_id, instruction_id, participant_id, \
    sequence_id, idempotency_key, rail_type, payload::text, headers::text, attempt_count, \
    zombie_count, created_at, turn_id, in_doubt_since, shard, batch \
    FROM outbox.claim_outbox_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";

/// What a worker asks for.
#[derive(Debug)]
pub struct Claim<'a> {
    pub rows: i32,
    pub worker_id: &'a str,
    pub lease_seconds: i32,
    pub rail_type: &'a str,
    pub tenant_id: Option<Uuid>,
    /// At most so many rows of one lane.
    pub lane_rows: i32,
    /// On a rail that delivers in batches: for which shards, and where their destinations end.
    pub shards: Option<(Vec<FreeShard>, Places)>,
}

impl WorkerStore {
    /// Leases due rows; those of one lane stand together, in order, with the same turn.
    pub async fn claim(&self, claim: &Claim<'_>) -> Result<Vec<Row>, StoreError> {
        let rails = [claim.rail_type];
        let free = claim.shards.as_ref().map(|(free, _)| free);
        let shards: Option<Vec<i16>> =
            free.map(|free| free.iter().map(|one| one.tenure.shard).collect());
        let epochs: Option<Vec<i64>> =
            free.map(|free| free.iter().map(|one| one.tenure.epoch).collect());
        let batches: Option<Vec<i64>> =
            free.map(|free| free.iter().map(|one| one.last_batch).collect());
        let places = claim.shards.as_ref().map(|(_, places)| json!(places));
        let rows = self
            .query(
                CLAIM,
                &[
                    (&claim.rows, Type::INT4),
                    (&claim.worker_id, Type::TEXT),
                    (&claim.lease_seconds, Type::INT4),
                    (&rails.as_slice(), Type::TEXT_ARRAY),
                    (&claim.tenant_id, Type::UUID),
                    (&claim.lane_rows, Type::INT4),
                    (&shards, Type::INT2_ARRAY),
                    (&epochs, Type::INT8_ARRAY),
                    (&places, Type::JSONB),
                    (&batches, Type::INT8_ARRAY),
                ],
            )
            .await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &SqlRow) -> Result<Row, StoreError> {
    Ok(Row {
        outbox_id: row.try_get(0)?,
        lease_token: row.try_get(1)?,
        tenant_id: row.try_get(2)?,
        instruction_id: row.try_get(3)?,
        participant_id: row.try_get(4)?,
        sequence_id: row.try_get(5)?,
        idempotency_key: row.try_get(6)?,
        rail_type: row.try_get(7)?,
        payload: row.try_get(8)?,
        headers: headers(row.try_get(9)?)?,
        attempt_no: row.try_get::<_, i32>(10)? + 1,
        zombie_count: row.try_get(11)?,
        created_at: row.try_get(12)?,
        turn_id: row.try_get(13)?,
        in_doubt_since: row.try_get(14)?,
        batch: match (row.try_get(15)?, row.try_get(16)?) {
            (Some(shard), Some(number)) => Some(Batch { shard, number }),
            _ => None,
        },
    })
}

/// An object of strings, as the contract has checked.
fn headers(text: &str) -> Result<Vec<(String, String)>, StoreError> {
    if text == "{}" {
        return Ok(Vec::new());
    }
    let headers: Map<String, Value> = serde_json::from_str(text)
        .map_err(|_| StoreError::Protocol("headers that are no JSON object".to_owned()))?;
    let strings = headers.into_iter().filter_map(|(name, value)| match value {
        Value::String(value) => Some((name, value)),
        _ => None,
    });
    Ok(strings.collect())
}
