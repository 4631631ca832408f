//! What an archived partition is, who may read it, and when it is dropped.

use std::time::Instant;

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use crate::calls::{code, enqueue};
use crate::lane_acts::{PARTICIPANT, RAIL, fail_first_of, outcome};
use crate::support::Database;
use crate::upkeep::{
    ARCHIVED, HOT_DAYS_LATER, PATIENCE, SOME_PASSES, STILL_PENDING, Said, after_some_passes,
    deliver_next, move_to_tomorrow, partition_of, set, upkeep, verdict, with_a_delivered_row,
};

/// A database with one archived partition of the ledger.
async fn archived() -> (Database, Client, String) {
    let (database, client, partition) = with_a_delivered_row().await;
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&client, &partition).await, ARCHIVED);
    (database, client, partition)
}

/// Who can read the archived partition; the others are refused for want of a right.
async fn readers(database: &Database, partition: &str) -> Vec<&'static str> {
    let mut readers = Vec::new();
    let roles = ["operator", "readonly", "auditor", "ingest", "executor"];
    for role in roles {
        let client = database.connect_as(&format!("symphony_{role}")).await;
        let read = format!("SELECT outbox_id FROM outbox_archive.{partition}");
        match client.query(&read, &[]).await {
            Ok(rows) if rows.len() == 1 => readers.push(role),
            Ok(rows) => panic!("{role} reads {} rows instead of one", rows.len()),
            Err(error) => assert_eq!(code(&error), "42501"),
        }
    }
    readers
}

#[tokio::test]
async fn an_archived_partition_is_read_by_operators_and_auditors_and_by_nobody_who_writes() {
    let (database, _client, partition) = archived().await;
    assert_eq!(readers(&database, &partition).await, ["operator", "readonly", "auditor"]);
}

#[tokio::test]
async fn without_the_grant_nobody_would_read_an_archived_partition() {
    let (database, client, partition) = archived().await;
    let revoke = format!(
        "REVOKE ALL ON outbox_archive.{partition} FROM symphony_operator, symphony_readonly, symphony_auditor"
    );
    client.batch_execute(&revoke).await.unwrap();
    assert_eq!(readers(&database, &partition).await, Vec::<&str>::new());
}

/// What the superuser is told who tries to change an archived partition, or a row that is not there.
async fn changes(client: &Client, partition: &str) -> Vec<String> {
    let changes = [
        "UPDATE outbox_archive.@ SET rail_code = 'forged' WHERE false",
        "UPDATE outbox_archive.@ SET rail_code = 'forged'",
        "DELETE FROM outbox_archive.@",
        "TRUNCATE outbox_archive.@",
    ];
    let mut told = Vec::new();
    for change in changes {
        told.push(outcome(client.execute(&change.replace('@', partition), &[]).await));
    }
    told
}

#[tokio::test]
async fn an_archived_partition_is_still_append_only() {
    let (_database, client, partition) = archived().await;
    assert_eq!(changes(&client, &partition).await, ["P0001"; 4]);
}

#[tokio::test]
async fn without_its_trigger_an_archived_partition_could_be_changed() {
    let (_database, client, partition) = archived().await;
    let drop = format!("DROP TRIGGER append_only ON outbox_archive.{partition}");
    client.batch_execute(&drop).await.unwrap();
    assert_eq!(changes(&client, &partition).await, ["done"; 4]);
}

async fn exists_in_archive(client: &Client, partition: &str) -> bool {
    let query = "SELECT to_regclass('outbox_archive.' || $1) IS NOT NULL";
    client.query_one(query, &[&partition]).await.unwrap().get(0)
}

/// What upkeep says in a few passes, or why one of them fails.
async fn some_passes(client: &Client) -> Result<Vec<Said>, Error> {
    let mut said = Vec::new();
    for _ in 0..SOME_PASSES {
        said.extend(upkeep(client).await?);
    }
    Ok(said)
}

/// Whether an archived partition is still there, and said to be dropped, a month later.
async fn a_month_later(settings: &str) -> (bool, bool) {
    let (database, client, partition) = archived().await;
    set(&client, settings).await;
    database.advance(4 * HOT_DAYS_LATER).await;
    let said = some_passes(&client).await.unwrap();
    let dropped = said.iter().any(|said| said.action == "dropped" && said.about(&partition));
    (exists_in_archive(&client, &partition).await, dropped)
}

#[tokio::test]
async fn an_archived_partition_is_dropped_only_where_a_second_age_is_set_and_reached() {
    assert_eq!(a_month_later("{}").await, (true, false));
    assert_eq!(a_month_later(r#"{"drop_after_days": 60}"#).await, (true, false));
    assert_eq!(a_month_later(r#"{"drop_after_days": 30}"#).await, (false, true));
}

#[tokio::test]
async fn without_waiting_for_a_second_age_an_archived_partition_would_be_dropped() {
    let age = "p.ends_at <= outbox.clock() - v_days * interval '24 hours'";
    let (database, client, partition) = with_a_delivered_row().await;
    database.take_out("drop_archived_partitions", age, "true").await;
    database.advance(HOT_DAYS_LATER).await;
    after_some_passes(&client, &partition).await;
    assert!(!exists_in_archive(&client, &partition).await);
}

/// What upkeep says of a partition that is old enough to be dropped but was never archived.
async fn old_but_not_archived(without: bool) -> String {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    let row = enqueue(&client, PARTICIPANT, RAIL).await.outbox_id;
    let partition = partition_of(&client, row).await;
    set(&client, r#"{"drop_after_days": 8}"#).await;
    if without {
        database.take_out("drop_archived_partitions", "p.archived_at IS NOT NULL", "true").await;
    }
    database.advance(4 * HOT_DAYS_LATER).await;
    match some_passes(&client).await {
        Ok(_) => verdict(&client, &partition).await,
        Err(error) => code(&error).to_owned(),
    }
}

#[tokio::test]
async fn a_partition_that_is_not_archived_is_never_dropped() {
    assert_eq!(old_but_not_archived(false).await, STILL_PENDING);
}

#[tokio::test]
async fn without_asking_whether_it_is_archived_upkeep_would_reach_for_hot_partitions() {
    assert_eq!(old_but_not_archived(true).await, "42P01");
}

#[tokio::test]
async fn what_is_said_to_be_dropped_is_gone_even_when_another_partition_is_being_read() {
    let (database, client, partition) = archived().await;
    let events = partition.replace("attempts", "events");
    assert_eq!(verdict(&client, &events).await, ARCHIVED);
    set(&client, r#"{"drop_after_days": 30}"#).await;
    database.advance(4 * HOT_DAYS_LATER).await;
    let reader = database.connect().await;
    let lock = format!("BEGIN; LOCK outbox_archive.{events} IN ACCESS SHARE MODE");
    reader.batch_execute(&lock).await.unwrap();
    let said = some_passes(&client).await.unwrap();
    assert!(said.iter().any(|said| said.action == "busy" && said.about(&events)), "{said:?}");
    assert!(said.iter().any(|said| said.action == "dropped"), "{said:?}");
    for Said { partition, .. } in said.iter().filter(|said| said.action == "dropped") {
        let dropped = partition.as_deref().unwrap();
        assert!(!exists_in_archive(&client, dropped).await, "{dropped} is there: {said:?}");
    }
}

/// What else is said in the pass that archives a partition, while another that is to be dropped is being read.
async fn said_beside_archived(database: &Database, client: &Client, dropped: &str) -> Vec<String> {
    let tomorrow = deliver_tomorrow(client).await;
    set(client, r#"{"drop_after_days": 8}"#).await;
    database.advance(2 * HOT_DAYS_LATER).await;
    let reader = database.connect().await;
    let lock = format!("BEGIN; LOCK outbox_archive.{dropped} IN ACCESS SHARE MODE");
    reader.batch_execute(&lock).await.unwrap();
    let until = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < until, "it is not archived");
        let said = upkeep(client).await.unwrap();
        if said.iter().any(|said| said.about(&tomorrow) && said.action == "archived") {
            let others = said.iter().filter(|said| !said.about(&tomorrow));
            return others.map(|said| said.action.clone()).collect();
        }
        assert!(
            !said.iter().any(|said| said.about(&tomorrow) && said.action == "busy"),
            "{said:?}"
        );
    }
}

/// The partition of a row that was delivered tomorrow.
async fn deliver_tomorrow(client: &Client) -> String {
    crate::calls::enqueue_key(client, "order", PARTICIPANT, "tomorrow", RAIL).await.unwrap();
    let row = move_to_tomorrow(client, "tomorrow").await;
    deliver_next(client, RAIL).await;
    partition_of(client, row).await
}

#[tokio::test]
async fn the_pass_that_archives_waits_for_nobody_who_reads_what_is_to_be_dropped() {
    let (database, client, partition) = archived().await;
    let said = said_beside_archived(&database, &client, &partition).await;
    assert!(!said.contains(&"busy".to_owned()), "{said:?}");
}

#[tokio::test]
async fn without_an_end_after_archiving_it_would_wait_with_the_ledger_locked() {
    let (database, client, partition) = archived().await;
    let end = "IF v_step IS DISTINCT FROM 'archived' THEN";
    database.take_out("run_outbox_upkeep", end, "IF true THEN").await;
    let said = said_beside_archived(&database, &client, &partition).await;
    assert!(said.contains(&"busy".to_owned()), "{said:?}");
}

#[tokio::test]
async fn upkeep_does_all_its_work_as_the_executor() {
    let (database, _superuser, partition) = with_a_delivered_row().await;
    let executor = database.connect_as("symphony_executor").await;
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&executor, &partition).await, ARCHIVED);
}

#[tokio::test]
async fn the_failures_of_an_archived_partition_leave_the_list_of_failures() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    let failed: Uuid = fail_first_of(&client, 1).await.outbox_id;
    deliver_next(&client, "dlq").await;
    crate::lane_acts::dismiss(&client, failed).await.unwrap();
    let partition = partition_of(&client, failed).await;
    database.advance(HOT_DAYS_LATER).await;
    assert_eq!(verdict(&client, &partition).await, ARCHIVED);
    let left = "SELECT count(*) FROM outbox.payment_outbox_failures";
    assert_eq!(client.query_one(left, &[]).await.unwrap().get::<_, i64>(0), 0);
    let read = format!("SELECT state::text FROM outbox_archive.{partition} WHERE outbox_id = $1");
    assert_eq!(client.query_one(&read, &[&failed]).await.unwrap().get::<_, String>(0), "FAILED");
}
