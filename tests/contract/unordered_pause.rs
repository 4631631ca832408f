//! On a rail with ordering = none a row that waits in a lane of its own follows the pause of its participant's lane,
//! and its resumption, whoever looks at it meanwhile.

use std::time::Duration;

use tokio_postgres::Client;

use super::calls::claim;
use super::lane_acts::{pause, resume};
use super::steps::{Request, pid, run, set_policies, until_blocked};
use super::support::Database;

const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A connection to a database whose clock is ours, where the lane of p on bank is paused.
async fn paused(database: &Database) -> Client {
    database.control_clock().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"bank": {"ordering": "none"}}"#).await;
    pause(&client, "p", "bank").await.unwrap();
    client
}

/// A row that its producer delays, and that is then due.
async fn enqueue_delayed(database: &Database, client: &Client) {
    const LATER: &str = "SELECT (outbox.clock() + interval '300 days')::text";
    let later = client.query_one(LATER, &[]).await.unwrap().get(0);
    Request::new("p", "bank").with(|r| r.not_before = Some(later)).call(client).await.unwrap();
    database.advance(YEAR).await;
}

async fn claimed(client: &Client) -> Vec<i64> {
    claim(client, "w", 10).await.iter().map(|row| row.sequence_id).collect()
}

/// What is claimed while a resumption is not committed yet, of a row that was enqueued after it had listed its lanes,
/// and what afterwards.
async fn enqueued_beside_a_resumption(database: &Database) -> [Vec<i64>; 2] {
    let client = paused(database).await;
    let operator = database.connect().await;
    run(&operator, "BEGIN").await;
    resume(&operator, "p", "bank").await.unwrap();
    enqueue_delayed(database, &client).await;
    let during = claimed(&client).await;
    run(&operator, "COMMIT").await;
    [during, claimed(&client).await]
}

#[tokio::test]
async fn a_row_that_is_enqueued_beside_a_resumption_is_claimed() {
    let told = enqueued_beside_a_resumption(&Database::new().await).await;
    assert_eq!(told, [vec![], vec![1]]);
}

#[tokio::test]
async fn without_a_lock_for_the_look_at_the_pause_such_a_row_would_never_be_claimed() {
    let database = Database::new().await;
    let look = "outbox.main_lane_stays_paused(";
    database.take_out("settle_lanes", look, "outbox.main_lane_is_paused(").await;
    assert_eq!(enqueued_beside_a_resumption(&database).await[1], Vec::<i64>::new());
}

/// A claim has just found row 1 paused and is not committed yet: a resumption waits for it. Row 2 is enqueued and
/// found paused meanwhile. What is claimed when both are committed?
async fn enqueued_while_a_resumption_waits(database: &Database) -> Vec<i64> {
    let client = paused(database).await;
    let (first, operator) = (database.connect().await, database.connect().await);
    enqueue_delayed(database, &client).await;
    run(&first, "BEGIN").await;
    assert_eq!(claimed(&first).await, Vec::<i64>::new());
    let waiting = pid(&operator).await;
    let resumed = tokio::spawn(async move { resume(&operator, "p", "bank").await });
    until_blocked(&client, waiting).await;
    enqueue_delayed(database, &client).await;
    assert_eq!(claimed(&client).await, Vec::<i64>::new());
    run(&first, "COMMIT").await;
    resumed.await.unwrap().unwrap();
    claimed(&client).await
}

#[tokio::test]
async fn a_row_that_is_enqueued_while_a_resumption_waits_is_claimed() {
    assert_eq!(enqueued_while_a_resumption_waits(&Database::new().await).await, [1, 2]);
}

#[tokio::test]
async fn without_the_lane_locked_before_others_are_listed_such_a_row_would_never_be_claimed() {
    let database = Database::new().await;
    let lock = "AND l.solo_sequence_id = 0 FOR NO KEY UPDATE";
    database.take_out("resume_outbox_lane", lock, "AND false").await;
    assert_eq!(enqueued_while_a_resumption_waits(&database).await, [1]);
}
