//! What the interleavings are made of: full requests, retries as a client makes them, and waiting
//! for another connection to wait.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::calls::{Claimed, Enqueued, code};

/// Whatever has not happened by then will not happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request as a producer makes it, with every argument.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) instruction: String,
    pub(crate) participant: String,
    pub(crate) key: String,
    pub(crate) rail: String,
    pub(crate) payload: String,
    pub(crate) headers: Option<String>,
    pub(crate) tenant: Option<Uuid>,
    pub(crate) not_before: Option<String>,
}

impl Request {
    /// Of an instruction of its own.
    pub(crate) fn new(participant: &str, rail: &str) -> Self {
        Self {
            instruction: Uuid::new_v4().to_string(),
            participant: participant.to_owned(),
            key: "key".to_owned(),
            rail: rail.to_owned(),
            payload: r#"{"amount": 1.0}"#.to_owned(),
            headers: None,
            tenant: None,
            not_before: None,
        }
    }

    pub(crate) fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut changed = self.clone();
        change(&mut changed);
        changed
    }

    pub(crate) async fn call(&self, client: &Client) -> Result<Enqueued, Error> {
        const CALL: &str = "SELECT outbox_id, sequence_id, is_new FROM outbox.enqueue_payment_outbox(\
            $1, $2, $3, $4, $5::text::jsonb, $6::text::jsonb, $7, $8::text::timestamptz)";
        let row = client
            .query_one(
                CALL,
                &[
                    &self.instruction,
                    &self.participant,
                    &self.key,
                    &self.rail,
                    &self.payload,
                    &self.headers,
                    &self.tenant,
                    &self.not_before,
                ],
            )
            .await?;
        Ok(Enqueued { outbox_id: row.get(0), sequence_id: row.get(1), is_new: row.get(2) })
    }

    /// Again and again, as long as the server says that another try may succeed.
    pub(crate) async fn call_until_settled(&self, client: &Client) -> Result<Enqueued, Error> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.call(client).await {
                Err(error) if matches!(code(&error), "40001" | "40P01") => {
                    assert!(Instant::now() < deadline, "a client retries for ever: {error}");
                }
                settled => return settled,
            }
        }
    }
}

/// Like [`super::calls::claim`], but may be refused.
pub(crate) async fn try_claim(
    client: &Client,
    worker: &str,
    size: i32,
) -> Result<Vec<Claimed>, Error> {
    const CALL: &str = "SELECT * FROM outbox.claim_outbox_batch($1, $2, 60)";
    let rows = client.query(CALL, &[&size, &worker]).await?;
    Ok(rows.iter().map(Claimed::from).collect())
}

/// Due rows of one rail.
pub(crate) async fn claim_rail(
    client: &Client,
    worker: &str,
    size: i32,
    rail: &str,
) -> Vec<Claimed> {
    const CALL: &str = "SELECT * FROM outbox.claim_outbox_batch($1, $2, 60, ARRAY[$3::text])";
    let rows = client.query(CALL, &[&size, &worker, &rail]).await.unwrap();
    rows.iter().map(Claimed::from).collect()
}

/// Claims until there is something: a lane whose producer was still at work is looked at again
/// only after a moment.
pub(crate) async fn claim_when_due(client: &Client, worker: &str) -> Vec<Claimed> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let rows = try_claim(client, worker, 100).await.unwrap();
        if !rows.is_empty() || Instant::now() > deadline {
            return rows;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}

/// Returns when the connection `pid` waits for a lock that another holds.
pub(crate) async fn until_blocked(watcher: &Client, pid: i32) {
    const BLOCKED: &str = "SELECT cardinality(pg_blocking_pids($1)) > 0";
    let deadline = Instant::now() + PATIENCE;
    while !watcher.query_one(BLOCKED, &[&pid]).await.unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < deadline, "{pid} never waited");
        tokio::task::yield_now().await;
    }
}

/// One number that a query returns.
pub(crate) async fn count(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

pub(crate) async fn run(client: &Client, statements: &str) {
    client.batch_execute(statements).await.unwrap();
}

/// Waiting for a lock is a failure on this connection.
pub(crate) async fn never_wait(client: &Client) {
    run(client, "SET lock_timeout = '300ms'").await;
}

/// What was refused, or nothing.
pub(crate) fn refusal<T>(result: Result<T, Error>) -> Option<String> {
    result.err().map(|error| code(&error).to_owned())
}

pub(crate) async fn set_policies(client: &Client, policies: &str) {
    const CALL: &str = "SELECT outbox.set_rail_policies($1::text::jsonb, 'test', 'test')";
    client.execute(CALL, &[&policies]).await.unwrap();
}

/// A sequence that does not go back on rollback: what numbers must not come from.
pub(crate) const LEAKY_NUMBERS: &str = "CREATE SCHEMA leaky; CREATE SEQUENCE leaky.numbers; \
    GRANT USAGE ON SCHEMA leaky TO PUBLIC; GRANT USAGE ON SEQUENCE leaky.numbers TO PUBLIC";
