//! Rails with ordering = none: a row that waits holds up nobody.

use std::time::Duration;

use tokio_postgres::Client;

use super::calls::{claim, complete, enqueue, repair};
use super::steps::{Request, count, refusal, set_policies};
use super::support::Database;

const NONE: &str = r#"{"bank": {"ordering": "none"}}"#;
const STRICT: &str = r#"{"bank": {"ordering": "strict"}}"#;

async fn prepared(database: &Database, policies: &str) -> Client {
    database.control_clock().await;
    let client = database.connect().await;
    set_policies(&client, policies).await;
    client
}

async fn claimed(client: &Client) -> Vec<i64> {
    claim(client, "w", 10).await.iter().map(|row| row.sequence_id).collect()
}

/// The first of two rows is retried in a minute, then a third arrives: what can be claimed now,
/// and what in a minute.
async fn beside_a_retried_row(database: &Database, policies: &str) -> [Vec<i64>; 2] {
    const RETRY: &str = "SELECT FROM outbox.complete_outbox_attempt($1, $2, 'w', 'RETRYABLE', p_retry_delay_seconds => 60)";
    let client = prepared(database, policies).await;
    enqueue(&client, "p", "bank").await;
    enqueue(&client, "p", "bank").await;
    let rows = claim(&client, "w", 10).await;
    client.execute(RETRY, &[&rows[0].outbox_id, &rows[0].lease_token]).await.unwrap();
    // On a strict rail this one was given back.
    let _ = complete(&client, "w", &rows[1], "DISPATCHED").await;
    enqueue(&client, "p", "bank").await;
    let now = claimed(&client).await;
    database.advance(Duration::from_secs(61)).await;
    [now, claimed(&client).await]
}

#[tokio::test]
async fn a_retried_row_holds_up_nobody_where_order_does_not_count() {
    let database = Database::new().await;
    let [now, later] = beside_a_retried_row(&database, NONE).await;
    assert_eq!((now, later), (vec![3], vec![1]));
}

#[tokio::test]
async fn a_retried_row_holds_up_the_others_where_order_counts() {
    let database = Database::new().await;
    assert_eq!(beside_a_retried_row(&database, STRICT).await, [vec![], vec![1, 2, 3]]);

    let database = Database::new().await;
    database.take_out("settle_the_rest", "solo = p.solo OR j.unordered", "solo = p.solo").await;
    assert_eq!(beside_a_retried_row(&database, NONE).await[0], Vec::<i64>::new());
}

/// A delayed row, then one that is due.
async fn beside_a_delayed_row(database: &Database, policies: &str) -> Vec<i64> {
    let client = prepared(database, policies).await;
    let later =
        Request::new("p", "bank").with(|r| r.not_before = Some("2030-01-01T00:00:00Z".to_owned()));
    later.call(&client).await.unwrap();
    enqueue(&client, "p", "bank").await;
    claimed(&client).await
}

#[tokio::test]
async fn a_delayed_row_holds_up_nobody_where_order_does_not_count() {
    assert_eq!(beside_a_delayed_row(&Database::new().await, NONE).await, [2]);
    assert_eq!(beside_a_delayed_row(&Database::new().await, STRICT).await, Vec::<i64>::new());
}

#[tokio::test]
async fn without_a_lane_of_its_own_a_delayed_row_holds_up_the_others() {
    let database = Database::new().await;
    database
        .take_out("enqueue_payment_outbox", "v_solo := EXISTS", "v_solo := false AND EXISTS")
        .await;
    assert_eq!(beside_a_delayed_row(&database, NONE).await, Vec::<i64>::new());
}

/// What is told to the third, the first and the second of three leased rows, in this order.
async fn out_of_order(database: &Database, policies: &str) -> Vec<Option<String>> {
    let client = prepared(database, policies).await;
    for _ in 0..3 {
        enqueue(&client, "p", "bank").await;
    }
    let rows = claim(&client, "w", 10).await;
    let mut told = Vec::new();
    for n in [2, 0, 1] {
        told.push(refusal(complete(&client, "w", &rows[n], "DISPATCHED").await));
    }
    told
}

#[tokio::test]
async fn outcomes_come_in_any_order_where_order_does_not_count() {
    assert_eq!(out_of_order(&Database::new().await, NONE).await, [None, None, None]);
    let strict = out_of_order(&Database::new().await, STRICT).await;
    assert_eq!(strict, [Some("P7006".to_owned()), None, None]);
}

#[tokio::test]
async fn without_the_exception_for_unordered_rails_outcomes_are_refused() {
    let database = Database::new().await;
    database.take_out("judge_outcomes", "(s.is_next OR s.unordered)", "s.is_next").await;
    assert_eq!(out_of_order(&database, NONE).await[0].as_deref(), Some("P7006"));
}

/// A row with a lane of its own whose worker dies again and again is paused like any other: an
/// operator must be able to let it go on.
#[tokio::test]
async fn a_lane_of_one_row_that_was_paused_can_be_resumed() {
    let database = Database::new().await;
    let client = prepared(&database, NONE).await;
    enqueue(&client, "p", "bank").await;
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "RETRYABLE").await.unwrap();
    for _ in 0..5 {
        assert_eq!(claimed(&client).await, [1]);
        database.advance(Duration::from_secs(61)).await;
        assert_eq!(repair(&client, "r").await.len(), 1);
        database.advance(Duration::from_secs(2)).await;
    }
    assert_eq!(claimed(&client).await, Vec::<i64>::new());
    let paused = "SELECT count(*) FROM outbox.payment_outbox_lanes WHERE paused_at IS NOT NULL";
    assert_eq!(count(&client, paused).await, 1);
    let resume = "SELECT outbox.resume_outbox_lane('p', 'bank', 'operator', 'fixed')";
    assert_eq!(refusal(client.execute(resume, &[]).await), None);
    assert_eq!(claimed(&client).await, [1]);
}
