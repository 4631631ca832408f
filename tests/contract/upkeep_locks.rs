//! Upkeep waits for locks, but not for long: nobody who enqueues waits behind it for longer.

use std::time::Instant;

use tokio::task::JoinHandle;
use tokio_postgres::{Client, Error};

use crate::calls::enqueue_key;
use crate::lane_acts::{PARTICIPANT, RAIL, dismiss, fail_first_of, is_waiting, outcome, pid};
use crate::support::Database;
use crate::upkeep::{
    ARCHIVED, HOT_DAYS_LATER, OLDER_TRANSACTION, PATIENCE, Said, deliver_next, move_to_tomorrow,
    partition_of, set, upkeep, verdict, with_a_delivered_row,
};

/// Several times as long as upkeep may wait. Planned as in a session that has run the look-up
/// often, which locks every partition of the ledger.
const A_WHILE: &str = "SET lock_timeout = '1500ms'; SET plan_cache_mode = force_generic_plan";

const LOCK_TIMEOUT: &str = "SET lock_timeout TO '200ms'";

#[derive(Debug, PartialEq)]
struct BesideUpkeep {
    new_key: String,
    used_key: String,
    upkeep: String,
}

type Pass = JoinHandle<(Client, Result<Vec<Said>, Error>)>;

/// Enqueues while upkeep waits for a lock that `read`, an open transaction, holds. A pass that
/// other tests' transactions kept from its work is tried again.
async fn enqueue_beside(database: &Database, partition: &str, read: &str) -> BesideUpkeep {
    let (reader, producer) = (database.connect().await, database.connect().await);
    producer.batch_execute(A_WHILE).await.unwrap();
    reader.batch_execute(read).await.unwrap();
    let mut worker = database.connect().await;
    let worker_pid = pid(&worker).await;
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let pass: Pass = tokio::spawn(async move {
            let said = upkeep(&worker).await;
            (worker, said)
        });
        let waits = waits_or_ends(&producer, worker_pid, &pass).await;
        if waits {
            let (new_key, used_key) = enqueue_both(&producer).await;
            reader.batch_execute("COMMIT").await.unwrap();
            let said = pass.await.unwrap().1.unwrap();
            let about = said.iter().find(|said| said.about(partition));
            let upkeep = about.map_or("nothing", |said| &said.action).to_owned();
            return BesideUpkeep { new_key, used_key, upkeep };
        }
        let said;
        (worker, said) = pass.await.unwrap();
        let said = said.unwrap();
        let to_be_tried_again =
            |said: &Said| said.detail == OLDER_TRANSACTION || said.action == "again";
        assert!(said.iter().any(to_be_tried_again), "{said:?}");
    }
    panic!("upkeep never came to its work");
}

/// A new key, which is rolled back so that its row keeps no partition, and one that was used.
async fn enqueue_both(producer: &Client) -> (String, String) {
    producer.batch_execute("BEGIN").await.unwrap();
    let new_key = outcome(enqueue_key(producer, "order", PARTICIPANT, "new", RAIL).await);
    producer.batch_execute("ROLLBACK").await.unwrap();
    (new_key, outcome(enqueue_key(producer, "order", PARTICIPANT, "used", RAIL).await))
}

/// Whether the pass waits for a lock; false when it ends without.
async fn waits_or_ends(observer: &Client, worker_pid: i32, pass: &Pass) -> bool {
    while !pass.is_finished() {
        if is_waiting(observer, worker_pid).await {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Runs passes until only the partition's detachment is left to do.
async fn until_it_can_be_detached(client: &Client, partition: &str) {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let said = upkeep(client).await.unwrap();
        if said.iter().any(|said| said.about(partition) && said.action == "again") {
            return;
        }
    }
    panic!("{partition} is never ready");
}

const READ_LEDGER: &str = "BEGIN; SELECT count(*) FROM outbox.payment_outbox_attempts";

/// A row delivered tomorrow under the key that the producer asks for again.
async fn deliver_used_key(client: &Client) {
    enqueue_key(client, "order", PARTICIPANT, "used", RAIL).await.unwrap();
    move_to_tomorrow(client, "used").await;
    deliver_next(client, RAIL).await;
}

/// Somebody reads the ledger while upkeep wants to detach a partition: what happens meanwhile,
/// and what becomes of the partition.
async fn beside_a_detachment(guarded: bool) -> (BesideUpkeep, String) {
    let (database, client, partition) = with_a_delivered_row().await;
    deliver_used_key(&client).await;
    database.advance(HOT_DAYS_LATER).await;
    until_it_can_be_detached(&client, &partition).await;
    if !guarded {
        let longer = "SET lock_timeout TO '60s'";
        database.take_out("run_outbox_upkeep", LOCK_TIMEOUT, longer).await;
    }
    let told = enqueue_beside(&database, &partition, READ_LEDGER).await;
    let later = match told.upkeep.as_str() {
        "archived" => String::new(),
        _ => verdict(&client, &partition).await,
    };
    (told, later)
}

/// Somebody has locked a failure that goes with its partition, for as long as upkeep is ready to wait.
async fn beside_a_locked_failure(database: &Database, client: &Client) -> BesideUpkeep {
    const LOCK: &str = "BEGIN; SELECT FROM outbox.payment_outbox_failures FOR UPDATE";
    database.control_clock().await;
    let failed = fail_first_of(client, 1).await.outbox_id;
    deliver_next(client, "dlq").await;
    dismiss(client, failed).await.unwrap();
    deliver_used_key(client).await;
    let partition = partition_of(client, failed).await;
    database.advance(HOT_DAYS_LATER).await;
    until_it_can_be_detached(client, &partition).await;
    database.take_out("run_outbox_upkeep", LOCK_TIMEOUT, "SET lock_timeout TO '60s'").await;
    enqueue_beside(database, &partition, LOCK).await
}

fn beside(new_key: &str, used_key: &str, upkeep: &str) -> BesideUpkeep {
    let [new_key, used_key, upkeep] = [new_key, used_key, upkeep].map(str::to_owned);
    BesideUpkeep { new_key, used_key, upkeep }
}

#[tokio::test]
async fn upkeep_that_cannot_detach_gives_way_to_enqueues_and_archives_later() {
    let expected = (beside("done", "done", "busy"), ARCHIVED.to_owned());
    assert_eq!(beside_a_detachment(true).await, expected);
}

#[tokio::test]
async fn without_its_lock_time_out_upkeep_would_hold_up_enqueues_for_as_long_as_a_reader_reads() {
    let expected = (beside("done", "55P03", "archived"), String::new());
    assert_eq!(beside_a_detachment(false).await, expected);
}

#[tokio::test]
async fn upkeep_does_not_keep_the_ledger_from_others_while_it_waits_for_a_failure() {
    let database = Database::new().await;
    let client = database.connect().await;
    let told = beside_a_locked_failure(&database, &client).await;
    assert_eq!(told, beside("done", "done", "archived"));
}

#[tokio::test]
async fn with_its_partition_detached_first_it_would() {
    const DETACH: &str = "EXECUTE format('ALTER TABLE outbox.%I DETACH PARTITION outbox.%I', p_part.parent_name, p_part.partition_name);";
    const FIRST: &str = "IF p_part.parent_name = 'payment_outbox_attempts' THEN";
    let database = Database::new().await;
    let client = database.connect().await;
    database.take_out("archive_partition", DETACH, "").await;
    database.take_out("archive_partition", FIRST, &format!("{DETACH} {FIRST}")).await;
    let told = beside_a_locked_failure(&database, &client).await;
    assert_eq!(told.used_key, "55P03");
}

#[tokio::test]
async fn upkeep_that_has_many_partitions_to_make_waits_no_longer_than_for_one() {
    let database = Database::new().await;
    let client = database.connect().await;
    deliver_used_key(&client).await;
    set(&client, r#"{"partitions_ahead": 20}"#).await;
    // Upkeep can make the partitions of the ledger, and then has to wait for those of the events.
    let read = "BEGIN; SELECT count(*) FROM outbox.payment_outbox_events";
    let told = enqueue_beside(&database, "", read).await;
    assert_eq!(told, beside("done", "done", "nothing"));
}

#[tokio::test]
async fn upkeep_says_busy_and_does_not_fail_where_somebody_has_locked_the_ledger() {
    let database = Database::new().await;
    let (client, owner) = (database.connect().await, database.connect().await);
    let lock = "BEGIN; LOCK outbox.payment_outbox_attempts IN ACCESS EXCLUSIVE MODE";
    owner.batch_execute(lock).await.unwrap();
    let said = upkeep(&client).await.expect("upkeep goes on another time");
    assert!(said.iter().any(|said| said.action == "busy"), "{said:?}");
}
