//! What an operator does to a lane or to a failure, and what a test asks afterwards.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use crate::calls::{Claimed, code, complete, enqueue};

/// Who acts in these tests, and why.
pub(crate) const ACTOR: &str = "ana";
pub(crate) const REASON: &str = "the bank called";

/// A participant of every test here: each has a database of its own.
pub(crate) const PARTICIPANT: &str = "alice";
pub(crate) const RAIL: &str = "ach";

/// The version that is now in force.
pub(crate) async fn set_policies(client: &Client, policies: &str) -> Result<i32, Error> {
    const CALL: &str = "SELECT outbox.set_rail_policies($1::text::jsonb, $2, $3)";
    Ok(client.query_one(CALL, &[&policies, &ACTOR, &REASON]).await?.get(0))
}

/// From here on a FAILED row halts its lane.
pub(crate) async fn halt_on_failure(client: &Client) {
    set_policies(client, r#"{"ach": {"on_failed": "halt"}}"#).await.unwrap();
}

pub(crate) async fn pause(client: &Client, participant: &str, rail: &str) -> Result<(), Error> {
    const CALL: &str = "SELECT outbox.pause_outbox_lane($1, $2, $3, $4)";
    client.execute(CALL, &[&participant, &rail, &ACTOR, &REASON]).await.map(drop)
}

pub(crate) async fn resume(client: &Client, participant: &str, rail: &str) -> Result<(), Error> {
    const CALL: &str = "SELECT outbox.resume_outbox_lane($1, $2, $3, $4)";
    client.execute(CALL, &[&participant, &rail, &ACTOR, &REASON]).await.map(drop)
}

/// The row that was skipped.
pub(crate) async fn skip(client: &Client, participant: &str, rail: &str) -> Result<Uuid, Error> {
    const CALL: &str = "SELECT outbox.skip_outbox_lane_head($1, $2, $3, $4)";
    Ok(client.query_one(CALL, &[&participant, &rail, &ACTOR, &REASON]).await?.get(0))
}

/// The row that replays, and its number.
pub(crate) async fn replay(client: &Client, failed: Uuid) -> Result<(Uuid, i64), Error> {
    const CALL: &str = "SELECT outbox_id, sequence_id FROM outbox.replay_failed_outbox($1, $2, $3)";
    let row = client.query_one(CALL, &[&failed, &ACTOR, &REASON]).await?;
    Ok((row.get(0), row.get(1)))
}

pub(crate) async fn dismiss(client: &Client, failed: Uuid) -> Result<(), Error> {
    dismiss_as(client, failed, ACTOR).await
}

pub(crate) async fn dismiss_as(client: &Client, failed: Uuid, actor: &str) -> Result<(), Error> {
    const CALL: &str = "SELECT outbox.dismiss_failed_outbox($1, $2, $3)";
    client.execute(CALL, &[&failed, &actor, &REASON]).await.map(drop)
}

/// Up to `size` due rows of the one rail: dead letters wait on another.
pub(crate) async fn claim_rail(client: &Client, rail: &str, size: i32) -> Vec<Claimed> {
    const CALL: &str = "SELECT * FROM outbox.claim_outbox_batch($1, 'worker', 60, ARRAY[$2])";
    client.query(CALL, &[&size, &rail]).await.unwrap().iter().map(Claimed::from).collect()
}

/// The numbers of the rows that can be claimed on the tests' rail, which are then claimed.
pub(crate) async fn claimable(client: &Client) -> Vec<i64> {
    claim_rail(client, RAIL, 100).await.iter().map(|row| row.sequence_id).collect()
}

/// Enqueues rows 1 to `rows` and reports the first as FAILED while the others are leased too.
pub(crate) async fn fail_first_of(client: &Client, rows: usize) -> Claimed {
    for _ in 0..rows {
        enqueue(client, PARTICIPANT, RAIL).await;
    }
    fail_next(client, 100).await
}

/// Claims up to `size` rows and reports the first as FAILED.
pub(crate) async fn fail_next(client: &Client, size: i32) -> Claimed {
    let claimed = claim_rail(client, RAIL, size).await;
    complete(client, "worker", &claimed[0], "FAILED").await.unwrap();
    claimed[0].clone()
}

/// The SQLSTATE of a refusal, or "done".
pub(crate) fn outcome<T>(result: Result<T, Error>) -> String {
    result.map_or_else(|error| code(&error).to_owned(), |_| "done".to_owned())
}

/// Sequence numbers, or any other integers, that a query finds.
pub(crate) async fn numbers(client: &Client, query: &str) -> Vec<i64> {
    client.query(query, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Waits until the session is held up by a lock. Bounded, since a statement that
/// never waits would otherwise be waited for without end.
pub(crate) async fn await_lock_wait(observer: &Client, pid: i32) {
    for _ in 0..20_000 {
        if is_waiting(observer, pid).await {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("session {pid} does not wait for a lock");
}

pub(crate) async fn is_waiting(observer: &Client, pid: i32) -> bool {
    const WAITS: &str = "SELECT FROM pg_locks WHERE pid = $1 AND NOT granted LIMIT 1";
    observer.query_opt(WAITS, &[&pid]).await.unwrap().is_some()
}

pub(crate) async fn pid(client: &Client) -> i32 {
    client.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
}
