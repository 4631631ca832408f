//! Rows that are given back unsent, and events that are switched off.

use std::time::Duration;

use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::{claim, complete, enqueue, repair};
use super::steps::count;
use super::support::Database;

const ATTEMPTS: &str = "SELECT count(*) FROM outbox.payment_outbox_attempts";

async fn claimed(client: &Client) -> Vec<i64> {
    claim(client, "w", 10).await.iter().map(|row| row.sequence_id).collect()
}

/// Of three leased rows the second is given back for half a minute, once with a forged token and
/// once with its own: how many rows go back each time, what can be claimed after the first is
/// delivered, and what half a minute later.
async fn give_back(database: &Database) -> ([usize; 2], [Vec<i64>; 2]) {
    const RELEASE: &str = "SELECT outbox_id FROM outbox.release_outbox_leases('w', ARRAY[$1::uuid], ARRAY[$2::uuid], 30)";
    database.control_clock().await;
    let client = database.connect().await;
    for _ in 0..3 {
        enqueue(&client, "p", "bank").await;
    }
    let rows = claim(&client, "w", 10).await;
    let forged = client.query(RELEASE, &[&rows[1].outbox_id, &Uuid::new_v4()]).await.unwrap().len();
    let owned =
        client.query(RELEASE, &[&rows[1].outbox_id, &rows[1].lease_token]).await.unwrap().len();
    complete(&client, "w", &rows[0], "DISPATCHED").await.unwrap();
    let now = claimed(&client).await;
    database.advance(Duration::from_secs(31)).await;
    ([forged, owned], [now, claimed(&client).await])
}

#[tokio::test]
async fn a_release_gives_rows_back_with_a_delay_and_writes_no_attempt() {
    let database = Database::new().await;
    assert_eq!(give_back(&database).await, ([0, 2], [vec![], vec![2, 3]]));
    let client = database.connect().await;
    assert_eq!(count(&client, ATTEMPTS).await, 1, "the first row's");
    let counted = "SELECT sum(attempt_count)::int8 FROM outbox.payment_outbox_pending";
    assert_eq!(count(&client, counted).await, 0);
}

#[tokio::test]
async fn each_part_of_a_release_is_needed() {
    let database = Database::new().await;
    database.take_out("held_rows", "AND a.lease_token = r.lease_token", "").await;
    assert_eq!(give_back(&database).await.0, [2, 0], "a forged token gives rows back");

    let database = Database::new().await;
    let delay = "v_now + p_delay_seconds * interval '1 second'";
    database.take_out("release_outbox_leases", delay, "v_now").await;
    assert_eq!(give_back(&database).await.1, [vec![2, 3], vec![]], "there is no delay");

    let database = Database::new().await;
    database.take_out("release_outbox_leases", "OR (NOT h.unordered AND", "OR (false AND").await;
    assert_eq!(give_back(&database).await.0, [0, 1], "the row behind stays in flight");
}

/// The batch events of a claim, a completion and a repair, with the number of rows they list.
async fn batch_events(database: &Database, on: bool) -> Vec<(String, i32)> {
    database.control_clock().await;
    let client = database.connect().await;
    let settings =
        format!("SELECT outbox.set_outbox_settings('{{\"batch_events\": {on}}}', 'test', 'test')");
    client.execute(&settings, &[]).await.unwrap();
    for lane in ["p", "q", "r"] {
        enqueue(&client, lane, "bank").await;
    }
    let rows = claim(&client, "w", 10).await;
    complete(&client, "w", &rows[0], "DISPATCHED").await.unwrap();
    database.advance(Duration::from_secs(61)).await;
    assert_eq!(repair(&client, "r").await.len(), 2);
    let events = "SELECT event_type, cardinality(outbox_ids) FROM outbox.payment_outbox_events \
                  WHERE event_type <> 'SETTINGS_SET' ORDER BY occurred_at";
    let events = client.query(events, &[]).await.unwrap();
    events.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn a_batch_leaves_one_event_unless_they_are_switched_off() {
    let events = batch_events(&Database::new().await, true).await;
    let expected = [("LEASE_CLAIMED", 3), ("ATTEMPT_COMPLETED", 1), ("LEASE_EXPIRED_REPAIRED", 2)];
    assert_eq!(events, expected.map(|(event, rows)| (event.to_owned(), rows)));
    assert_eq!(batch_events(&Database::new().await, false).await, []);
}

#[tokio::test]
async fn without_the_switch_events_are_always_written() {
    let database = Database::new().await;
    let switch = "AND (SELECT s.batch_events FROM outbox.payment_outbox_settings AS s)";
    for function in ["log_batch_event", "requeue_expired"] {
        database.take_out(function, switch, "").await;
    }
    assert_eq!(batch_events(&database, false).await.len(), 3);
}
