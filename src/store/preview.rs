//! What is to be known before rows are replayed.

use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{Moment, Store, StoreError};

const PREVIEW: &str = "SELECT outbox_id, participant_id, rail_type, sequence_id, instruction_id, \
    error_code, failed_at, resolution, first_tried_at, first_tried_age_seconds, halts_lane, \
    later_of_instruction, later_delivered, waiting_in_lane FROM outbox.preview_replay($1)";

/// A FAILED row that an operator may replay.
#[derive(Debug, Serialize)]
pub struct ReplayCandidate {
    pub outbox_id: Uuid,
    pub participant_id: String,
    pub rail_type: String,
    pub sequence_id: i64,
    pub instruction_id: String,
    pub error_code: Option<String>,
    pub failed_at: Moment,
    /// REPLAYED or DISMISSED: it cannot be replayed any more.
    pub resolution: Option<String>,
    /// Since when the rail may know its key.
    pub first_tried_at: Option<Moment>,
    pub first_tried_age_seconds: Option<i64>,
    /// It goes first in its lane, under its old number.
    pub halts_lane: bool,
    /// Rows of the same instruction that were enqueued after it.
    pub later_of_instruction: i64,
    /// A later row of its lane was delivered.
    pub later_delivered: bool,
    pub waiting_in_lane: i64,
}

impl Store {
    /// In the order in which they are to be replayed.
    pub async fn preview_replay(
        &self,
        outbox_ids: &[Uuid],
    ) -> Result<Vec<ReplayCandidate>, StoreError> {
        let rows = self.client.query_typed(PREVIEW, &[(&outbox_ids, Type::UUID_ARRAY)]).await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &Row) -> Result<ReplayCandidate, StoreError> {
    Ok(ReplayCandidate {
        outbox_id: row.try_get(0)?,
        participant_id: row.try_get(1)?,
        rail_type: row.try_get(2)?,
        sequence_id: row.try_get(3)?,
        instruction_id: row.try_get(4)?,
        error_code: row.try_get(5)?,
        failed_at: Moment(row.try_get(6)?),
        resolution: row.try_get(7)?,
        first_tried_at: row.try_get::<_, Option<_>>(8)?.map(Moment),
        first_tried_age_seconds: row.try_get(9)?,
        halts_lane: row.try_get(10)?,
        later_of_instruction: row.try_get(11)?,
        later_delivered: row.try_get(12)?,
        waiting_in_lane: row.try_get(13)?,
    })
}
