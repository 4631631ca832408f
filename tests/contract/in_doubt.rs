//! A claim says since when a row may be with its rail already.

use std::time::Duration;

use tokio_postgres::Client;

use super::calls::{claim, complete, enqueue};
use super::lane_acts::replay;
use super::support::Database;

const SINCE: &str = "SELECT in_doubt_since FROM outbox.claim_outbox_batch(1, 'w', 60, '{bank}')";

/// When the row was first claimed, and what the claim of its replay says, after this outcome of an attempt a day
/// after the row was enqueued.
async fn replayed_after(database: &Database, first: &str) -> [Option<std::time::SystemTime>; 2] {
    database.control_clock().await;
    let client = database.connect().await;
    let row = enqueue(&client, "p", "bank").await.outbox_id;
    database.advance(Duration::from_secs(86_400)).await;
    let mut leased = claim(&client, "w", 1).await.remove(0);
    let claimed = "SELECT claimed_at FROM outbox.payment_outbox_pending WHERE outbox_id = $1";
    let claimed = client.query_one(claimed, &[&row]).await.unwrap().get(0);
    if first == "RETRYABLE" {
        complete(&client, "w", &leased, "RETRYABLE").await.unwrap();
        database.advance(Duration::from_secs(2)).await;
        assert_eq!(since(&client).await, claimed, "an earlier attempt of its own");
        let held = "SELECT outbox.release_outbox_leases('w', array_agg(outbox_id), array_agg(lease_token)) \
            FROM outbox.payment_outbox_pending";
        client.query(held, &[]).await.unwrap();
        leased = claim(&client, "w", 1).await.remove(0);
    }
    complete(&client, "w", &leased, "FAILED").await.unwrap();
    replay(&client, row).await.unwrap();
    [claimed, since(&client).await]
}

async fn since(client: &Client) -> Option<std::time::SystemTime> {
    client.query_one(SINCE, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_replay_of_a_row_in_doubt_is_in_doubt_since_the_first_was_claimed() {
    let [claimed, since] = replayed_after(&Database::new().await, "RETRYABLE").await;
    assert!(claimed.is_some());
    assert_eq!(since, claimed);
}

#[tokio::test]
async fn a_replay_of_a_row_that_was_refused_at_once_is_not_in_doubt() {
    let [_, since] = replayed_after(&Database::new().await, "FAILED").await;
    assert_eq!(since, None);
}

#[tokio::test]
async fn without_the_look_at_what_it_replays_a_replay_would_seem_new() {
    let database = Database::new().await;
    database.take_out("claim_outbox_batch", " OR t.replay_of IS NOT NULL", "").await;
    assert_eq!(replayed_after(&database, "RETRYABLE").await[1], None);
}
