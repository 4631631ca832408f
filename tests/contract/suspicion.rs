//! How often a row was lost with its worker since it last survived, and what it costs to know.

use std::time::Duration;

use tokio_postgres::Client;

use super::calls::{claim, complete, enqueue, repair};
use super::steps::{count, run};
use super::support::Database;

const EXPIRY: Duration = Duration::from_secs(61);

/// The row is lost with its worker so often.
async fn lose(database: &Database, client: &Client, times: usize) {
    for _ in 0..times {
        assert_eq!(claim(client, "gone", 1).await.len(), 1);
        database.advance(EXPIRY).await;
        assert_eq!(repair(client, "r").await.len(), 1);
        database.advance(Duration::from_secs(2)).await;
    }
}

/// What a claim says of losses, of a row that is lost three times, is retried, and is lost once more: before and after
/// the retry, and at the end.
async fn told(database: &Database) -> Vec<i64> {
    const LOST: &str = "SELECT zombie_count FROM outbox.claim_outbox_batch(1, 'w', 60)";
    const BACK: &str = "SELECT outbox.release_outbox_leases('w', ARRAY[outbox_id], ARRAY[lease_token]) \
        FROM outbox.payment_outbox_pending";
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    let mut told = Vec::new();
    for (times, survives) in [(3, true), (0, false), (1, false)] {
        lose(database, &client, times).await;
        told.push(count(&client, LOST).await);
        run(&client, BACK).await;
        if survives {
            let row = claim(&client, "w", 1).await.remove(0);
            complete(&client, "w", &row, "RETRYABLE").await.unwrap();
        }
    }
    told
}

#[tokio::test]
async fn a_row_that_survived_an_attempt_is_not_suspected_for_what_was_before() {
    assert_eq!(told(&Database::new().await).await, [3, 0, 1]);
}

#[tokio::test]
async fn without_a_look_at_what_it_survived_it_would_be_suspected_for_ever() {
    let database = Database::new().await;
    database.take_out("earlier_attempts", "own.last_no - own.survived_no", "own.last_no").await;
    assert_eq!(told(&database).await, [3, 4, 5]);
}

/// How many days of the ledger a claim of a retried row looks into.
async fn days_read(database: &Database) -> i64 {
    const READ: &str = "SELECT count(*) FROM pg_stat_xact_user_tables \
        WHERE relname LIKE 'payment\\_outbox\\_attempts\\_%' AND seq_scan + idx_scan > 0";
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "RETRYABLE").await.unwrap();
    // What a session has read is counted from its beginning.
    let client = database.connect().await;
    run(&client, "BEGIN").await;
    assert_eq!(claim(&client, "w", 1).await.len(), 1);
    count(&client, READ).await
}

#[tokio::test]
async fn a_claim_of_a_retried_row_reads_the_day_of_that_row_alone() {
    assert_eq!(days_read(&Database::new().await).await, 1);
}

#[tokio::test]
async fn if_it_were_looked_up_like_a_replay_every_day_would_be_read() {
    let database = Database::new().await;
    database.take_out("earlier_attempts", "p.replay_of IS NULL", "false").await;
    assert!(days_read(&database).await > 3);
}
