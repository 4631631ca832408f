//! What a RETRYABLE outcome does, and when it is the last one.

use tokio_postgres::Client;

use super::calls::{Claimed, Told, claim, complete, complete_batch, enqueue};
use super::steps::{count, refusal, run};
use super::support::Database;

const LETTERS: &str = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE rail_type = 'dlq'";
const FAILED: &str = "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'FAILED'";

async fn retry(client: &Client, counted: bool) -> String {
    const CALL: &str = "SELECT state::text FROM outbox.complete_outbox_attempt(\
        $1, $2, 'w', 'RETRYABLE', p_retry_delay_seconds => 0, p_counted => $3)";
    let row = claim(client, "w", 1).await.remove(0);
    client.query_one(CALL, &[&row.outbox_id, &row.lease_token, &counted]).await.unwrap().get(0)
}

/// After 19 counted retries (and one that does not count): the 20th, seen by another connection
/// before and after its commit, as (state, dead letters and failures before, after).
async fn twentieth_retry(database: &Database) -> (String, [i64; 2], [i64; 2]) {
    let (worker, reader) = (database.connect().await, database.connect().await);
    enqueue(&worker, "p", "bank").await;
    retry(&worker, false).await;
    for n in 1..20 {
        assert_eq!(retry(&worker, true).await, "RETRYABLE", "retry {n}");
    }
    run(&worker, "BEGIN").await;
    let state = retry(&worker, true).await;
    let before = [count(&reader, FAILED).await, count(&reader, LETTERS).await];
    run(&worker, "COMMIT").await;
    (state, before, [count(&reader, FAILED).await, count(&reader, LETTERS).await])
}

#[tokio::test]
async fn the_twentieth_counted_retry_fails_and_leaves_its_dead_letter() {
    let database = Database::new().await;
    assert_eq!(twentieth_retry(&database).await, ("FAILED".to_owned(), [0, 0], [1, 1]));
    let exhausted = format!("{FAILED} AND error_code = 'RETRIES_EXHAUSTED' AND attempt_no = 21");
    assert_eq!(count(&database.connect().await, &exhausted).await, 1);
}

#[tokio::test]
async fn without_the_ceiling_retries_go_on() {
    let database = Database::new().await;
    database.take_out("judge_outcomes", "y.retries >= 19", "y.retries >= 99").await;
    assert_eq!(twentieth_retry(&database).await, ("RETRYABLE".to_owned(), [0, 0], [0, 0]));
}

#[tokio::test]
async fn without_the_burial_a_failure_has_no_dead_letter() {
    let database = Database::new().await;
    let bury = "PERFORM outbox.bury_failed(v_failed, p_worker_id);";
    database.take_out("settle_the_rest", bury, "").await;
    assert_eq!(twentieth_retry(&database).await.2, [1, 0]);
}

/// The outcome of the 25th retry that does not count.
async fn twenty_fifth_uncounted(database: &Database) -> String {
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    for _ in 1..25 {
        if retry(&client, false).await == "FAILED" {
            return "FAILED".to_owned();
        }
    }
    retry(&client, false).await
}

#[tokio::test]
async fn uncounted_retries_never_exhaust() {
    assert_eq!(twenty_fifth_uncounted(&Database::new().await).await, "RETRYABLE");
}

#[tokio::test]
async fn if_every_retry_counted_an_outage_would_fail_everything() {
    let database = Database::new().await;
    let mark = "COALESCE(a.counted, true) AND y.retries";
    database.take_out("judge_outcomes", mark, "y.retries").await;
    database.take_out("judge_outcomes", "'RETRYABLE' AND a.counted)", "'RETRYABLE')").await;
    assert_eq!(twenty_fifth_uncounted(&database).await, "FAILED");
}

/// Seconds until the row is due again: three retries by the backoff, then one with 77 seconds of
/// the worker's own.
async fn delays(database: &Database) -> Vec<i64> {
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    let mut delays = Vec::new();
    for own in [None, None, None, Some(77)] {
        let row = claim(&client, "w", 1).await.remove(0);
        const CALL: &str = "SELECT FROM outbox.complete_outbox_attempt($1, $2, 'w', 'RETRYABLE', p_retry_delay_seconds => $3)";
        client.execute(CALL, &[&row.outbox_id, &row.lease_token, &own]).await.unwrap();
        let due = "SELECT extract(epoch FROM p.next_attempt_at - max(a.completed_at))::int8 \
            FROM outbox.payment_outbox_pending AS p JOIN outbox.payment_outbox_attempts AS a USING (outbox_id) \
            WHERE num_nonnulls(p.claimed_by, p.claimed_at, p.lease_token, p.lease_expires_at) = 0 GROUP BY p.outbox_id";
        delays.push(count(&client, due).await);
        database.advance(std::time::Duration::from_secs(80)).await;
    }
    delays
}

#[tokio::test]
async fn a_retry_clears_the_lease_and_waits_by_the_backoff_or_as_told() {
    assert_eq!(delays(&Database::new().await).await, [1, 2, 4, 77]);
}

#[tokio::test]
async fn without_the_workers_word_only_the_backoff_counts() {
    let database = Database::new().await;
    let told =
        "COALESCE(s.retry_delay_seconds * interval '1 second', outbox.outbox_retry_delay(s.no))";
    database.take_out("judge_outcomes", told, "outbox.outbox_retry_delay(s.no)").await;
    assert_eq!(delays(&database).await, [1, 2, 4, 8]);
}

async fn leased_lane(client: &Client, rows: i32) -> Vec<Claimed> {
    for _ in 0..rows {
        enqueue(client, "p", "bank").await;
    }
    claim(client, "w", rows).await
}

fn recorded(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.state.as_deref().or(told.refusal.as_deref()).unwrap()).collect()
}

/// Of four rows the second is to be retried; the batch has the outcomes of the first three. What
/// each is told, and how many leases are left.
async fn retry_in_the_middle(database: &Database) -> (Vec<String>, i64) {
    let client = database.connect().await;
    let rows = leased_lane(&client, 4).await;
    let outcomes = [(&rows[0], "DISPATCHED"), (&rows[1], "RETRYABLE"), (&rows[2], "DISPATCHED")];
    let told = complete_batch(&client, "w", &outcomes).await.unwrap();
    let leased = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE lease_token IS NOT NULL";
    let told = recorded(&told).into_iter().map(str::to_owned).collect();
    (told, count(&client, leased).await)
}

/// A lane of three whose head is retried once too often: how many leases are left.
async fn leases_after_the_last_retry(database: &Database) -> i64 {
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    for _ in 1..20 {
        retry(&client, true).await;
    }
    let rows = leased_lane(&client, 3).await;
    let told = complete_batch(&client, "w", &[(&rows[0], "RETRYABLE")]).await.unwrap();
    assert_eq!(recorded(&told), ["FAILED"]);
    let leased = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE lease_token IS NOT NULL";
    count(&client, leased).await
}

#[tokio::test]
async fn the_last_retry_too_gives_back_the_later_rows_which_nobody_has_sent() {
    assert_eq!(leases_after_the_last_retry(&Database::new().await).await, 0);
    let database = Database::new().await;
    database
        .take_out(
            "judge_outcomes",
            "'RETRYABLE' IN (r.asked_state, r.outcome)",
            "r.outcome = 'RETRYABLE'",
        )
        .await;
    assert_eq!(leases_after_the_last_retry(&database).await, 2, "it was the rule");
}

#[tokio::test]
async fn a_retry_gives_back_the_later_rows_of_its_lane() {
    let database = Database::new().await;
    let (told, leased) = retry_in_the_middle(&database).await;
    assert_eq!(told, ["DISPATCHED", "RETRYABLE", "P7002"]);
    assert_eq!(leased, 0);
    let again = claim(&database.connect().await, "w", 10).await;
    assert_eq!(again.iter().map(|row| row.sequence_id).collect::<Vec<_>>(), [2, 3, 4]);
}

#[tokio::test]
async fn without_giving_back_a_retry_is_overtaken() {
    let database = Database::new().await;
    let give_back = "WHEN s.behind_stop AND NOT s.unordered THEN";
    database.take_out("judge_outcomes", give_back, "WHEN false THEN").await;
    let (told, leased) = retry_in_the_middle(&database).await;
    assert_eq!(told, ["DISPATCHED", "RETRYABLE", "DISPATCHED"]);
    assert_eq!(leased, 1);
}

async fn second_row_first(database: &Database) -> Option<String> {
    let client = database.connect().await;
    let rows = leased_lane(&client, 2).await;
    refusal(complete(&client, "w", &rows[1], "DISPATCHED").await)
}

#[tokio::test]
async fn an_outcome_before_its_predecessor_is_refused() {
    let database = Database::new().await;
    assert_eq!(second_row_first(&database).await.as_deref(), Some("P7006"));
    assert_eq!(
        count(&database.connect().await, "SELECT count(*) FROM outbox.payment_outbox_attempts")
            .await,
        0
    );
}

#[tokio::test]
async fn without_the_order_of_outcomes_a_successor_goes_first() {
    let database = Database::new().await;
    database.take_out("judge_outcomes", "(s.is_next OR s.unordered)", "true").await;
    assert_eq!(second_row_first(&database).await, None);
}

/// attempt_no and attempt_count of two retries after somebody has written 50 into the cache.
async fn tampered_count(database: &Database) -> Vec<(i32, i64)> {
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    run(&client, "UPDATE outbox.payment_outbox_pending SET attempt_count = 50").await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        let row = claim(&client, "w", 1).await.remove(0);
        let (attempt_no, _) = complete(&client, "w", &row, "RETRYABLE").await.unwrap();
        let cached = "SELECT attempt_count::int8 FROM outbox.payment_outbox_pending";
        seen.push((attempt_no, count(&client, cached).await));
    }
    seen
}

#[tokio::test]
async fn attempts_are_numbered_by_the_ledger_and_the_count_never_goes_down() {
    assert_eq!(tampered_count(&Database::new().await).await, [(1, 50), (2, 50)]);
}

#[tokio::test]
async fn without_greatest_the_count_goes_down() {
    let database = Database::new().await;
    let greatest = "GREATEST(p.attempt_count, j.attempt_no)";
    database.take_out("settle_the_rest", greatest, "j.attempt_no").await;
    assert_eq!(tampered_count(&database).await, [(1, 1), (2, 2)]);
}
