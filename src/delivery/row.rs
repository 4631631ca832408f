//! A claimed row.

use std::fmt;
use std::time::SystemTime;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::Batch;

/// The rail type of dead letters.
pub const DEAD_LETTERS: &str = "dlq";

/// A row under a lease of this worker.
pub struct Row {
    pub outbox_id: Uuid,
    pub lease_token: Uuid,
    pub tenant_id: Option<Uuid>,
    pub instruction_id: String,
    pub participant_id: String,
    pub sequence_id: i64,
    pub idempotency_key: String,
    pub rail_type: String,
    /// The JSON text as PostgreSQL prints it. It is never parsed and printed again, because a
    /// twenty-digit amount must not pass through a float.
    pub payload: String,
    /// Trace context and the producer's own headers.
    pub headers: Vec<(String, String)>,
    /// The number that this attempt will have in the ledger, as far as the row knows.
    pub attempt_no: i32,
    /// How often a worker died, or lost its lease, with this row in its hands.
    pub zombie_count: i64,
    pub created_at: SystemTime,
    /// The turn of its lane: the rows that have the same one are leased together, and no others.
    pub turn_id: i64,
    /// When it, or one of the rows that it replays, was first claimed for an attempt that may have
    /// reached the rail.
    pub in_doubt_since: Option<SystemTime>,
    /// The batch that it was claimed for, on a rail that delivers in batches.
    pub batch: Option<Batch>,
}

impl Row {
    /// The key toward a rail: the same for every attempt and every replay of a row. A hash, because
    /// a receiver may limit its length and its characters.
    pub fn rail_key(&self) -> String {
        let mut hash = Sha256::new();
        hash.update((self.instruction_id.len() as u64).to_be_bytes());
        hash.update(self.instruction_id.as_bytes());
        hash.update(self.idempotency_key.as_bytes());
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The value of a header that the producer stored.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
impl Row {
    /// A row for a test that cares for its number, or for nothing.
    pub(crate) fn example(sequence_id: i64) -> Self {
        Self {
            outbox_id: Uuid::from_u128(u128::from(sequence_id.unsigned_abs())),
            lease_token: Uuid::nil(),
            tenant_id: None,
            instruction_id: format!("instruction-{sequence_id}"),
            participant_id: "participant".to_owned(),
            sequence_id,
            idempotency_key: format!("key-{sequence_id}"),
            rail_type: "sepa".to_owned(),
            payload: "{}".to_owned(),
            headers: Vec::new(),
            attempt_no: 1,
            zombie_count: 0,
            turn_id: 1,
            in_doubt_since: None,
            batch: None,
            created_at: SystemTime::now(),
        }
    }
}

/// Without payload and headers: neither may reach a log.
impl fmt::Debug for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Row")
            .field("outbox_id", &self.outbox_id)
            .field("participant_id", &self.participant_id)
            .field("sequence_id", &self.sequence_id)
            .field("rail_type", &self.rail_type)
            .finish_non_exhaustive()
    }
}
