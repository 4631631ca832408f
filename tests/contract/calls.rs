//! The functions of the contract, called as a worker, a producer or an operator calls them.

use tokio_postgres::{Client, Error, Row};
use uuid::Uuid;

/// A row that a worker holds.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) outbox_id: Uuid,
    pub(crate) participant_id: String,
    pub(crate) sequence_id: i64,
    pub(crate) rail_type: String,
    pub(crate) attempt_count: i32,
    pub(crate) lease_token: Uuid,
}

impl From<&Row> for Claimed {
    fn from(row: &Row) -> Self {
        Self {
            outbox_id: row.get("outbox_id"),
            participant_id: row.get("participant_id"),
            sequence_id: row.get("sequence_id"),
            rail_type: row.get("rail_type"),
            attempt_count: row.get("attempt_count"),
            lease_token: row.get("lease_token"),
        }
    }
}

/// What became of one row of a batch: the state recorded, or the SQLSTATE of the refusal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) outbox_id: Uuid,
    pub(crate) attempt_no: Option<i32>,
    pub(crate) state: Option<String>,
    pub(crate) refusal: Option<String>,
}

pub(crate) struct Enqueued {
    pub(crate) outbox_id: Uuid,
    pub(crate) sequence_id: i64,
    pub(crate) is_new: bool,
}

/// The SQLSTATE with which PostgreSQL refused.
pub(crate) fn code(error: &Error) -> &str {
    error.code().expect("the server refused it").code()
}

/// A payment of its own instruction.
pub(crate) async fn enqueue(client: &Client, participant: &str, rail: &str) -> Enqueued {
    let instruction = Uuid::new_v4().to_string();
    enqueue_key(client, &instruction, participant, "key", rail).await.unwrap()
}

pub(crate) async fn enqueue_key(
    client: &Client,
    instruction: &str,
    participant: &str,
    key: &str,
    rail: &str,
) -> Result<Enqueued, Error> {
    const CALL: &str = "SELECT outbox_id, sequence_id, is_new \
        FROM outbox.enqueue_payment_outbox($1, $2, $3, $4, '{\"amount\": \"10.00\"}')";
    let row = client.query_one(CALL, &[&instruction, &participant, &key, &rail]).await?;
    Ok(Enqueued { outbox_id: row.get(0), sequence_id: row.get(1), is_new: row.get(2) })
}

/// Up to `size` due rows of any rail.
pub(crate) async fn claim(client: &Client, worker: &str, size: i32) -> Vec<Claimed> {
    claim_for(client, worker, size, 60).await
}

pub(crate) async fn claim_for(
    client: &Client,
    worker: &str,
    size: i32,
    seconds: i32,
) -> Vec<Claimed> {
    const CALL: &str = "SELECT outbox_id, participant_id, sequence_id, rail_type, attempt_count, lease_token \
        FROM outbox.claim_outbox_batch($1, $2, $3)";
    let rows = client.query(CALL, &[&size, &worker, &seconds]).await.unwrap();
    rows.iter().map(Claimed::from).collect()
}

/// One outcome; the attempt number and the state that was recorded.
pub(crate) async fn complete(
    client: &Client,
    worker: &str,
    row: &Claimed,
    state: &str,
) -> Result<(i32, String), Error> {
    const CALL: &str = "SELECT attempt_no, state::text FROM outbox.complete_outbox_attempt(\
        $1, $2, $3, $4::text::outbox.outbox_attempt_state, p_retry_delay_seconds => 0)";
    let told = client.query_one(CALL, &[&row.outbox_id, &row.lease_token, &worker, &state]).await?;
    Ok((told.get(0), told.get(1)))
}

/// One outcome for each row, in one call; retries are due again at once.
pub(crate) async fn complete_batch(
    client: &Client,
    worker: &str,
    outcomes: &[(&Claimed, &str)],
) -> Result<Vec<Told>, Error> {
    const CALL: &str = "SELECT outbox_id, attempt_no, state::text, refusal FROM outbox.complete_outbox_batch(\
        $1, $2, $3, $4::text[]::outbox.outbox_attempt_state[], p_retry_delays_seconds => $5)";
    let ids: Vec<Uuid> = outcomes.iter().map(|(row, _)| row.outbox_id).collect();
    let tokens: Vec<Uuid> = outcomes.iter().map(|(row, _)| row.lease_token).collect();
    let states: Vec<&str> = outcomes.iter().map(|(_, state)| *state).collect();
    let delays = vec![0; outcomes.len()];
    let rows = client.query(CALL, &[&worker, &ids, &tokens, &states, &delays]).await?;
    let told = |row: &Row| Told {
        outbox_id: row.get(0),
        attempt_no: row.get(1),
        state: row.get(2),
        refusal: row.get(3),
    };
    Ok(rows.iter().map(told).collect())
}

/// The rows whose expired leases were taken back.
pub(crate) async fn repair(client: &Client, worker: &str) -> Vec<Uuid> {
    const CALL: &str = "SELECT outbox_id FROM outbox.repair_expired_leases(500, $1)";
    client.query(CALL, &[&worker]).await.unwrap().iter().map(|row| row.get(0)).collect()
}
