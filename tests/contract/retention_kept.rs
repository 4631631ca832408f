//! Each reason for which a partition stays in the hot ledger, and that it goes when the reason does.

use crate::calls::{complete, enqueue};
use crate::lane_acts::{PARTICIPANT, RAIL, claim_rail, dismiss, fail_first_of, replay};
use crate::support::Database;
use crate::upkeep::{
    ARCHIVED, COMPLETED_LATE, HOT_DAYS_LATER, OLDER_TRANSACTION, STILL_PENDING, UNRESOLVED,
    after_some_passes, deliver_next, partition_of, set, verdict, with_a_delivered_row,
};

const KEPT: &str = "why_partition_is_kept";

/// What upkeep says about a finished partition in its hot days, and afterwards.
async fn finished(without: Option<&str>) -> [String; 2] {
    let (database, client, partition) = with_a_delivered_row().await;
    if let Some(guard) = without {
        database.take_out("archive_oldest_partition", guard, "true").await;
    }
    let hot = after_some_passes(&client, &partition).await;
    if hot == ARCHIVED {
        return [hot, String::new()];
    }
    database.advance(HOT_DAYS_LATER).await;
    [hot, verdict(&client, &partition).await]
}

#[tokio::test]
async fn a_finished_partition_is_archived_when_its_hot_days_are_over_and_not_before() {
    assert_eq!(finished(None).await, ["", ARCHIVED]);
}

#[tokio::test]
async fn without_asking_for_its_age_a_partition_would_be_looked_at_in_its_hot_days() {
    assert_eq!(finished(Some("p.ends_at <= v_hot_since")).await[0], OLDER_TRANSACTION);
}

/// A row is pending after its partition's hot days, then delivered, then old itself.
async fn pending_row(database: &Database) -> [String; 3] {
    database.control_clock().await;
    let client = database.connect().await;
    let row = enqueue(&client, PARTICIPANT, RAIL).await.outbox_id;
    let partition = partition_of(&client, row).await;
    database.advance(HOT_DAYS_LATER).await;
    let pending = verdict(&client, &partition).await;
    deliver_next(&client, RAIL).await;
    if pending == ARCHIVED {
        return [pending, String::new(), String::new()];
    }
    let late = verdict(&client, &partition).await;
    if late == ARCHIVED {
        return [pending, late, String::new()];
    }
    database.advance(HOT_DAYS_LATER).await;
    [pending, late, verdict(&client, &partition).await]
}

#[tokio::test]
async fn a_partition_is_kept_for_a_pending_row_and_then_for_its_late_completion() {
    let database = Database::new().await;
    assert_eq!(pending_row(&database).await, [STILL_PENDING, COMPLETED_LATE, ARCHIVED]);
}

#[tokio::test]
async fn without_looking_for_pending_rows_their_partition_would_go_before_them() {
    let database = Database::new().await;
    let guard = "p.outbox_id >= p_part.from_id AND p.outbox_id < p_part.to_id";
    database.take_out(KEPT, guard, "false").await;
    assert_eq!(pending_row(&database).await[0], ARCHIVED);
}

#[tokio::test]
async fn without_looking_at_completions_a_row_that_finishes_late_would_go_at_once() {
    let database = Database::new().await;
    database.take_out(KEPT, "IF v_recent", "IF false").await;
    assert_eq!(pending_row(&database).await[1], ARCHIVED);
}

#[derive(Clone, Copy)]
enum Resolution {
    Dismissed,
    Replayed,
}

/// A FAILED row whose dead letter was delivered: before and after an operator resolves it.
async fn failed_row(database: &Database, resolution: Resolution) -> [String; 2] {
    database.control_clock().await;
    let client = database.connect().await;
    let failed = fail_first_of(&client, 1).await.outbox_id;
    deliver_next(&client, "dlq").await;
    let partition = partition_of(&client, failed).await;
    database.advance(HOT_DAYS_LATER).await;
    let before = verdict(&client, &partition).await;
    if before == ARCHIVED {
        return [before, String::new()];
    }
    match resolution {
        Resolution::Dismissed => dismiss(&client, failed).await.unwrap(),
        Resolution::Replayed => {
            // The replay is of the same day here, so its own days count too.
            replay(&client, failed).await.unwrap();
            deliver_next(&client, RAIL).await;
            database.advance(HOT_DAYS_LATER).await;
        }
    }
    [before, verdict(&client, &partition).await]
}

#[tokio::test]
async fn a_partition_is_kept_for_a_failed_row_until_it_is_dismissed_or_replayed() {
    for resolution in [Resolution::Dismissed, Resolution::Replayed] {
        let database = Database::new().await;
        assert_eq!(failed_row(&database, resolution).await, [UNRESOLVED, ARCHIVED]);
    }
}

#[tokio::test]
async fn without_looking_for_open_failures_a_failed_row_would_be_forgotten() {
    let database = Database::new().await;
    database.take_out(KEPT, "f.resolution IS NULL", "false").await;
    assert_eq!(failed_row(&database, Resolution::Dismissed).await[0], ARCHIVED);
}

#[derive(Clone, Copy)]
enum Open {
    Transaction,
    Prepared,
}

/// A row of the partition's time is not committed yet: what upkeep says before and after it is.
async fn uncommitted_row(open: Open, guarded: bool) -> [String; 2] {
    let (database, client, partition) = with_a_delivered_row().await;
    if !guarded {
        let guard = "p_part.closing_xid IS NULL OR pg_snapshot_xmin(pg_current_snapshot()) <= p_part.closing_xid";
        database.take_out(KEPT, guard, "false").await;
    }
    // A transaction that has notified cannot be prepared.
    set(&client, r#"{"wake_up": false}"#).await;
    let producer = database.connect().await;
    producer.batch_execute("BEGIN").await.unwrap();
    enqueue(&producer, PARTICIPANT, RAIL).await;
    let commit = match open {
        Open::Transaction => "COMMIT".to_owned(),
        Open::Prepared => {
            let prepare = format!("PREPARE TRANSACTION '{}'", database.name());
            producer.batch_execute(&prepare).await.expect("max_prepared_transactions is set");
            format!("COMMIT PREPARED '{}'", database.name())
        }
    };
    database.advance(HOT_DAYS_LATER).await;
    let before = after_some_passes(&client, &partition).await;
    // Before any assertion: a database with a prepared transaction cannot be dropped.
    producer.batch_execute(&commit).await.unwrap();
    if before == ARCHIVED {
        return [before, String::new()];
    }
    [before, verdict(&client, &partition).await]
}

#[tokio::test]
async fn a_partition_is_kept_for_a_transaction_older_than_its_end() {
    let told = uncommitted_row(Open::Transaction, true).await;
    assert_eq!(told, [OLDER_TRANSACTION, STILL_PENDING]);
}

#[tokio::test]
async fn a_partition_is_kept_for_a_prepared_transaction_older_than_its_end() {
    let told = uncommitted_row(Open::Prepared, true).await;
    assert_eq!(told, [OLDER_TRANSACTION, STILL_PENDING]);
}

#[tokio::test]
async fn without_asking_for_transactions_a_partition_would_go_before_its_last_row_appears() {
    for open in [Open::Transaction, Open::Prepared] {
        assert_eq!(uncommitted_row(open, false).await[0], ARCHIVED);
    }
}

#[tokio::test]
async fn a_transaction_that_only_reads_keeps_nothing() {
    let (database, client, partition) = with_a_delivered_row().await;
    let reader = database.connect().await;
    reader.batch_execute("BEGIN; SELECT count(*) FROM pg_class").await.unwrap();
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&client, &partition).await, ARCHIVED);
}

#[tokio::test]
async fn a_leased_row_is_pending_too() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    let row = enqueue(&client, PARTICIPANT, RAIL).await.outbox_id;
    let partition = partition_of(&client, row).await;
    database.advance(HOT_DAYS_LATER).await;
    let leased = claim_rail(&client, RAIL, 1).await;
    assert_eq!(verdict(&client, &partition).await, STILL_PENDING);
    complete(&client, "worker", &leased[0], "DISPATCHED").await.unwrap();
    assert_eq!(verdict(&client, &partition).await, COMPLETED_LATE);
}
