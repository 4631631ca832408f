//! A producer that keeps its transaction open holds up nobody but other producers.

use tokio_postgres::{Client, Error};

use super::calls::{Claimed, code, complete, enqueue};
use super::steps::{
    Request, claim_rail, claim_when_due, count, never_wait, pid, run, set_policies, try_claim,
    until_blocked,
};
use super::support::Database;

const RENEW: &str =
    "SELECT FROM outbox.renew_outbox_leases('w', ARRAY[$1::uuid], ARRAY[$2::uuid], 90)";
const RELEASE: &str =
    "SELECT FROM outbox.release_outbox_leases('w', ARRAY[$1::uuid], ARRAY[$2::uuid], 0)";
const REPLAY: &str = "SELECT sequence_id FROM outbox.replay_failed_outbox($1, 'test', 'test')";

/// A producer with an open transaction for a lane that has `rows` rows, and a worker that fails
/// where it would have to wait.
async fn open_producer(database: &Database, rows: usize) -> (Client, Client) {
    let (producer, worker) = (database.connect().await, database.connect().await);
    for _ in 0..rows {
        enqueue(&worker, "p", "bank").await;
    }
    run(&producer, "BEGIN").await;
    enqueue(&producer, "p", "bank").await;
    never_wait(&worker).await;
    (producer, worker)
}

/// A whole round of a worker's work on the lane: claim, retry, renew, release, fail, dispatch.
async fn work(worker: &Client) -> Result<Vec<&'static str>, Error> {
    let mut done = Vec::new();
    let head = |rows: Vec<Claimed>| rows.into_iter().next();
    let Some(row) = head(try_claim(worker, "w", 10).await?) else { return Ok(done) };
    done.push("claim");
    complete(worker, "w", &row, "RETRYABLE").await?;
    done.push("retry");
    let Some(row) = head(try_claim(worker, "w", 10).await?) else { return Ok(done) };
    done.push("claim again");
    assert_eq!(worker.execute(RENEW, &[&row.outbox_id, &row.lease_token]).await?, 1);
    done.push("renew");
    assert_eq!(worker.execute(RELEASE, &[&row.outbox_id, &row.lease_token]).await?, 3);
    done.push("release");
    let rows = try_claim(worker, "w", 10).await?;
    for (row, state) in rows.iter().zip(["FAILED", "DISPATCHED", "FAILED"]) {
        complete(worker, "w", row, state).await?;
        done.push(state);
    }
    Ok(done)
}

/// What a worker gets done while the producer is there, or why it stops.
async fn work_beside_producer(database: &Database) -> Result<Vec<&'static str>, String> {
    let (producer, worker) = open_producer(database, 3).await;
    let done = work(&worker).await.map_err(|error| code(&error).to_owned());
    drop(producer);
    done
}

#[tokio::test]
async fn an_open_producer_blocks_no_step_of_a_worker() {
    let done = work_beside_producer(&Database::new().await).await.unwrap();
    let all =
        ["claim", "retry", "claim again", "renew", "release", "FAILED", "DISPATCHED", "FAILED"];
    assert_eq!(done, all);
}

#[tokio::test]
async fn a_producer_that_locks_its_lane_would_hide_it_from_claims() {
    let database = Database::new().await;
    database.take_out("enqueue_payment_outbox", "FOR KEY SHARE", "FOR UPDATE").await;
    assert_eq!(work_beside_producer(&database).await, Ok(vec![]));
}

#[tokio::test]
async fn a_dead_letter_with_a_number_of_its_own_would_wait_for_the_producer() {
    let database = Database::new().await;
    let insert = "INSERT INTO outbox.payment_outbox_pending (";
    let bump = format!(
        "PERFORM outbox.bump_participant_outbox_seq(v_failed.participant_id, v_failed.tenant_id); {insert}"
    );
    database.take_out("write_dead_letter", insert, &bump).await;
    assert_eq!(work_beside_producer(&database).await, Err("55P03".to_owned()));
}

/// The lane goes idle while the producer is at work; how many of its rows are claimed afterwards.
async fn claimed_after_idle(database: &Database) -> usize {
    let (producer, worker) = open_producer(database, 1).await;
    let row = try_claim(&worker, "w", 10).await.unwrap().remove(0);
    complete(&worker, "w", &row, "DISPATCHED").await.unwrap();
    assert!(try_claim(&worker, "w", 10).await.unwrap().is_empty(), "nothing is committed yet");
    run(&producer, "COMMIT").await;
    let lanes = count(&worker, "SELECT count(*) FROM outbox.payment_outbox_turns").await;
    if lanes == 0 { 0 } else { claim_when_due(&worker, "w").await.len() }
}

#[tokio::test]
async fn a_lane_that_went_idle_is_not_lost_to_an_open_producer() {
    assert_eq!(claimed_after_idle(&Database::new().await).await, 1);
}

#[tokio::test]
async fn a_producer_that_does_not_hold_its_lane_loses_it() {
    let database = Database::new().await;
    database.take_out("enqueue_payment_outbox", "FOR KEY SHARE;", ";").await;
    assert_eq!(claimed_after_idle(&database).await, 0);
}

#[tokio::test]
async fn an_open_producer_blocks_no_repair() {
    let database = Database::new().await;
    database.control_clock().await;
    let (producer, worker) = open_producer(&database, 2).await;
    assert_eq!(try_claim(&worker, "w", 10).await.unwrap().len(), 2);
    database.advance(std::time::Duration::from_secs(61)).await;
    assert_eq!(super::calls::repair(&worker, "r").await.len(), 2);
    drop(producer);
}

#[tokio::test]
async fn an_open_producer_blocks_no_replay_into_a_halted_lane() {
    let database = Database::new().await;
    set_policies(&database.connect().await, r#"{"bank": {"on_failed": "halt"}}"#).await;
    let (producer, worker) = open_producer(&database, 2).await;
    let row = try_claim(&worker, "w", 10).await.unwrap().remove(0);
    complete(&worker, "w", &row, "FAILED").await.unwrap();
    let replayed = worker.query_one(REPLAY, &[&row.outbox_id]).await.unwrap();
    assert_eq!(replayed.get::<_, i64>(0), row.sequence_id);
    drop(producer);
}

/// A replay needs a new number and waits for the producer; meanwhile a worker finishes a row that
/// it holds and claims another of the lane.
async fn work_beside_waiting_replay(database: &Database) -> Result<usize, String> {
    let (operator, watcher) = (database.connect().await, database.connect().await);
    let failed = enqueue(&watcher, "p", "bank").await.outbox_id;
    let row = try_claim(&watcher, "w", 10).await.unwrap().remove(0);
    complete(&watcher, "w", &row, "FAILED").await.unwrap();
    let (producer, worker) = open_producer(database, 2).await;
    let mut held = claim_rail(&worker, "w", 1, "bank").await;

    let waiting = pid(&operator).await;
    let replay = tokio::spawn(async move { operator.query_one(REPLAY, &[&failed]).await.unwrap() });
    until_blocked(&watcher, waiting).await;
    let completed = complete(&worker, "w", &held.remove(0), "DISPATCHED").await;
    let claimed = claim_rail(&worker, "w", 10, "bank").await.len();
    run(&producer, "COMMIT").await;
    replay.await.unwrap();
    completed.map(|_| claimed).map_err(|error| code(&error).to_owned())
}

#[tokio::test]
async fn a_replay_that_waits_for_a_producer_does_not_hold_the_lane() {
    assert_eq!(work_beside_waiting_replay(&Database::new().await).await, Ok(1));
}

#[tokio::test]
async fn a_replay_that_takes_its_number_last_would_hold_the_lane() {
    let database = Database::new().await;
    let number = "v_seq := outbox.number_for_replay(p_outbox_id);";
    let failure = "v_failed := outbox.open_failure(p_outbox_id);";
    let lines = format!("{number}\n  {failure}");
    database.take_out("replay_failed_outbox", &lines, &format!("{failure}\n  {number}")).await;
    assert_eq!(work_beside_waiting_replay(&database).await, Err("55P03".to_owned()));
}

#[tokio::test]
async fn a_row_of_a_new_lane_is_claimed_once_its_producer_commits() {
    let database = Database::new().await;
    let (producer, worker) = open_producer(&database, 0).await;
    assert!(try_claim(&worker, "w", 10).await.unwrap().is_empty());
    Request::new("q", "bank").call(&worker).await.unwrap();
    assert_eq!(try_claim(&worker, "w", 10).await.unwrap().len(), 1, "another participant goes on");
    run(&producer, "COMMIT").await;
    assert_eq!(claim_when_due(&worker, "w").await.len(), 1);
}
