//! The idempotency window is the hot ledger's age: not shorter, and over when it is over.

use std::time::Instant;

use tokio_postgres::Client;

use crate::calls::{Enqueued, code, enqueue_key};
use crate::lane_acts::{PARTICIPANT, RAIL, claim_rail, dismiss, fail_next, replay};
use crate::support::Database;
use crate::upkeep::{
    ARCHIVED, COMPLETED_LATE, HOT_DAYS_LATER, PATIENCE, deliver, deliver_next, move_to_tomorrow,
    partition_of, upkeep, verdict, with_a_delivered_row,
};

async fn ask_again(client: &Client, key: &str) -> Enqueued {
    enqueue_key(client, "order", PARTICIPANT, key, RAIL).await.unwrap()
}

/// A row finishes after its partition's hot days; upkeep runs, and its producer asks again:
/// what became of the partition, and whether the producer's request makes a second row.
async fn a_row_that_finishes_late(database: &Database) -> (String, bool) {
    database.control_clock().await;
    let client = database.connect().await;
    let row = ask_again(&client, "key").await.outbox_id;
    let partition = partition_of(&client, row).await;
    database.advance(HOT_DAYS_LATER).await;
    deliver_next(&client, RAIL).await;
    let kept = verdict(&client, &partition).await;
    (kept, ask_again(&client, "key").await.is_new)
}

#[tokio::test]
async fn a_row_that_finishes_late_is_found_by_its_key_for_its_hot_days() {
    let database = Database::new().await;
    let expected = (COMPLETED_LATE.to_owned(), false);
    assert_eq!(a_row_that_finishes_late(&database).await, expected);
}

#[tokio::test]
async fn without_waiting_for_late_completions_a_payment_could_be_made_twice() {
    let database = Database::new().await;
    database.take_out("why_partition_is_kept", "IF v_recent", "IF false").await;
    assert_eq!(a_row_that_finishes_late(&database).await, (ARCHIVED.to_owned(), true));
}

/// Asks again after the row was archived: new, or the SQLSTATE.
async fn after_the_window(without: Option<&str>) -> String {
    let (database, client, partition) = with_a_delivered_row().await;
    if let Some(guard) = without {
        database.take_out("archive_oldest_partition", guard, "false").await;
    }
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&client, &partition).await, ARCHIVED);
    match enqueue_key(&client, "order", PARTICIPANT, "key", RAIL).await {
        Ok(row) => format!("new: {}", row.is_new),
        Err(error) => code(&error).to_owned(),
    }
}

#[tokio::test]
async fn after_its_row_was_archived_a_key_can_be_used_again() {
    assert_eq!(after_the_window(None).await, "new: true");
}

#[tokio::test]
async fn without_clearing_the_keys_an_archived_row_would_block_its_key_for_ever() {
    assert_eq!(after_the_window(Some("v_part.keys_cleared_at IS NULL")).await, "40001");
}

/// Today's partition is archived. Two keys belong to tomorrow's: of a delivered row, and of a
/// FAILED one whose dead letter, with the same key, is of today. Which of them are still known?
async fn keys_of_tomorrow(database: &Database) -> Vec<bool> {
    database.control_clock().await;
    let client = database.connect().await;
    let today = partition_of(&client, deliver(&client, "today").await).await;
    for key in ["delivered", "failed"] {
        ask_again(&client, key).await;
        let id = move_to_tomorrow(&client, key).await;
        assert_ne!(partition_of(&client, id).await, today);
        if key == "delivered" {
            deliver_next(&client, RAIL).await;
        } else {
            fail_next(&client, 1).await;
            deliver_next(&client, "dlq").await;
        }
    }
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&client, &today).await, ARCHIVED);
    let mut known = Vec::new();
    for key in ["today", "delivered", "failed"] {
        known.push(!ask_again(&client, key).await.is_new);
    }
    known
}

#[tokio::test]
async fn archiving_a_partition_forgets_its_own_keys_and_no_others() {
    let database = Database::new().await;
    assert_eq!(keys_of_tomorrow(&database).await, [false, true, true]);
}

#[tokio::test]
async fn without_asking_whose_key_it_is_a_dead_letter_would_take_its_row_s_key_along() {
    let database = Database::new().await;
    let guard = " AND k.outbox_id = s.outbox_id";
    database.take_out("clear_partition_keys", guard, "").await;
    assert_eq!(keys_of_tomorrow(&database).await, [false, true, false]);
}

#[tokio::test]
async fn keys_are_cleared_slice_by_slice_until_none_is_left() {
    let (database, client, partition) = with_a_delivered_row().await;
    for key in ["second", "third"] {
        deliver(&client, key).await;
    }
    database.take_out("clear_partition_keys", "20000", "2").await;
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&client, &partition).await, ARCHIVED);
    let left = "SELECT count(*) FROM outbox.payment_outbox_keys";
    assert_eq!(client.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_key_is_known_while_the_replay_of_its_row_is_still_to_be_delivered() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    let original = ask_again(&client, "key").await.outbox_id;
    fail_next(&client, 1).await;
    deliver_next(&client, "dlq").await;
    let (replayed, _) = replay(&client, original).await.unwrap();
    // As if an operator had replayed it a day later.
    let tomorrow = "WITH tomorrow AS (SELECT outbox.uuidv7_floor(now() + interval '24 hours') AS id), \
        moved AS (UPDATE outbox.payment_outbox_pending SET outbox_id = id FROM tomorrow WHERE outbox_id = $1) \
        UPDATE outbox.payment_outbox_failures SET replay_outbox_id = id FROM tomorrow WHERE replay_outbox_id = $1";
    assert_eq!(client.execute(tomorrow, &[&replayed]).await.unwrap(), 1);
    let partition = partition_of(&client, original).await;
    database.advance(HOT_DAYS_LATER).await;
    verdict(&client, &partition).await;
    let again = ask_again(&client, "key").await;
    assert!(!again.is_new, "the payment would be made twice");
    assert_eq!(claim_rail(&client, RAIL, 10).await.len(), 1);
}

#[tokio::test]
async fn the_key_of_a_dismissed_failure_is_known_for_its_hot_days() {
    let database = Database::new().await;
    let client = database.connect().await;
    let original = ask_again(&client, "key").await.outbox_id;
    fail_next(&client, 1).await;
    dismiss(&client, original).await.unwrap();
    let again = ask_again(&client, "key").await;
    assert!(!again.is_new);
    assert_eq!(again.outbox_id, original);
}

/// How often a partition is read as a whole before its keys begin to be cleared, and in the two passes after that.
async fn read_as_a_whole(without: bool) -> [i64; 2] {
    const READ: &str =
        "SELECT COALESCE(sum(seq_scan), 0)::int8 FROM pg_stat_xact_user_tables WHERE relname = $1";
    let (database, client, partition) = with_a_delivered_row().await;
    for key in ["second", "third", "fourth", "fifth"] {
        deliver(&client, key).await;
    }
    database.take_out("clear_partition_keys", "20000", "2").await;
    if without {
        let once = "p_part.keys_cleared_to IS NOT NULL";
        database.take_out("why_partition_is_kept", once, "false").await;
    }
    database.advance(HOT_DAYS_LATER).await;
    // Its keys are found by an index, as in a partition that is worth it.
    client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off").await.unwrap();
    let mut reads = Vec::new();
    let until = Instant::now() + PATIENCE;
    while reads.len() < 3 {
        assert!(Instant::now() < until, "it is not archived");
        client.batch_execute("BEGIN").await.unwrap();
        // A session tells its counts to the server now and then only.
        let before: i64 = client.query_one(READ, &[&partition]).await.unwrap().get(0);
        let said = upkeep(&client).await.unwrap();
        let after: i64 = client.query_one(READ, &[&partition]).await.unwrap().get(0);
        client.batch_execute("COMMIT").await.unwrap();
        if said.iter().any(|said| said.about(&partition) && said.action == "again") {
            reads.push(after - before);
        }
    }
    [reads[0], reads[1] + reads[2]]
}

#[tokio::test]
async fn a_partition_is_read_once_and_not_for_each_slice_of_its_keys() {
    let [first, later] = read_as_a_whole(false).await;
    assert!(first > 0);
    assert_eq!(later, 0);
}

#[tokio::test]
async fn without_asking_whether_that_was_done_it_would_be_read_each_time() {
    assert!(read_as_a_whole(true).await[1] > 1);
}
