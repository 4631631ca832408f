//! The life of rows.

use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Moment, Store, StoreError};

const TRACE: &str = "SELECT occurred_at, what, outbox_id, participant_id, rail_type, sequence_id, \
    attempt_no, actor, error_code, rail_code, rail_reference, latency_ms, detail, related_id \
    FROM outbox.trace_outbox($1, $2, $3)";

/// One thing that happened to a row or its lane.
#[derive(Debug, Serialize)]
pub struct TraceEntry {
    pub occurred_at: Moment,
    /// `enqueued`, `leased`, the state of an attempt, or what an operator did.
    pub what: String,
    /// None for what was done to the whole lane.
    pub outbox_id: Option<Uuid>,
    pub participant_id: Option<String>,
    pub rail_type: Option<String>,
    pub sequence_id: Option<i64>,
    pub attempt_no: Option<i32>,
    pub actor: Option<String>,
    pub error_code: Option<String>,
    pub rail_code: Option<String>,
    pub rail_reference: Option<String>,
    pub latency_ms: Option<i32>,
    pub detail: Option<String>,
    /// The row that this one replays or carries to the DLQ, or by which it was replayed.
    pub related_id: Option<Uuid>,
}

impl Store {
    /// `kind` is `outbox`, `instruction` or `participant`; the newest entries, in order.
    pub async fn trace(
        &self,
        kind: &str,
        id: &str,
        limit: i32,
    ) -> Result<Vec<TraceEntry>, StoreError> {
        let parameters =
            [(&kind as _, Type::TEXT), (&id as _, Type::TEXT), (&limit as _, Type::INT4)];
        let rows = self.client.query_typed(TRACE, &parameters).await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<TraceEntry, StoreError> {
    Ok(TraceEntry {
        occurred_at: Moment(row.try_get(0)?),
        what: row.try_get(1)?,
        outbox_id: row.try_get(2)?,
        participant_id: row.try_get(3)?,
        rail_type: row.try_get(4)?,
        sequence_id: row.try_get(5)?,
        attempt_no: row.try_get(6)?,
        actor: row.try_get(7)?,
        error_code: row.try_get(8)?,
        rail_code: row.try_get(9)?,
        rail_reference: row.try_get(10)?,
        latency_ms: row.try_get(11)?,
        detail: row.try_get(12)?,
        related_id: row.try_get(13)?,
    })
}
