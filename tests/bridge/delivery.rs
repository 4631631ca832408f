//! From committed rows to records in order.

use std::collections::BTreeSet;

use crate::process::Setup;
use crate::rows::{all_done, count, each_once, enqueue, header};
use crate::support::{Database, Topic};

#[tokio::test]
async fn three_workers_deliver_ten_thousand_rows_complete_and_in_order() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(6).await);
    let setup = Setup::kafka(&database, &topic).await;
    enqueue(&database.connect().await, "kafka", 200, 10_000).await;
    // Each stands still with its first claim until all of them have one: none is left without work.
    let setup = setup.env("TRESTLE_FAILPOINT", "stop:claimed");
    let workers = [setup.run(), setup.run(), setup.run()];
    for worker in &workers {
        worker.stopped().await;
    }
    for worker in &workers {
        worker.signal("CONT");
    }
    all_done(&database).await;
    each_once(&topic, 10_000).await;
    assert_eq!(count(&database, "DISPATCHED").await, 10_000);
    assert_eq!(workers_in_the_ledger(&database).await.len(), 3);
}

async fn workers_in_the_ledger(database: &Database) -> BTreeSet<String> {
    let workers = "SELECT DISTINCT worker_id FROM outbox.payment_outbox_attempts";
    let rows = database.connect().await.query(workers, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A host may give the same process id to each start: the last part is what no start has twice.
#[tokio::test]
async fn each_start_of_a_worker_has_an_id_of_its_own() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let setup = Setup::kafka(&database, &topic).await;
    for _ in 0..2 {
        enqueue(&database.connect().await, "kafka", 1, 1).await;
        assert!(setup.start(&["drain"]).ended().await.success());
    }
    let workers = workers_in_the_ledger(&database).await;
    let starts: BTreeSet<_> = workers.iter().filter_map(|id| id.rsplit('-').next()).collect();
    assert_eq!(starts.len(), 2, "{workers:?}");
}

#[tokio::test]
async fn a_record_has_the_key_value_headers_and_reference_that_are_promised() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let client = database.connect().await;
    let call = "SELECT outbox_id FROM outbox.enqueue_payment_outbox('instruction', 'participant', 'key', 'kafka', \
        '{\"amount\": 12345678901234567890.10, \"b\": [1.0, 1e2]}', '{\"traceparent\": \"00-ab-cd-01\", \"mine\": \"x\"}')";
    let outbox_id: uuid::Uuid = client.query_one(call, &[]).await.unwrap().get(0);
    let _bridge = Setup::kafka(&database, &topic).await.run();
    all_done(&database).await;
    let record = topic.consume(1).await.remove(0);
    assert_eq!(record.key.as_deref(), Some(b"participant".as_slice()));
    let printed: String = client
        .query_one("SELECT payload::text FROM outbox.payment_outbox_attempts", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(String::from_utf8(record.value.clone()).unwrap(), printed);
    assert!(printed.contains("12345678901234567890.10"), "{printed}");
    for (name, value) in [
        ("ce_id", outbox_id.to_string().as_str()),
        ("ce_specversion", "1.0"),
        ("ce_subject", "participant"),
        ("sequence_id", "1"),
        ("instruction_id", "instruction"),
        ("idempotency_key", "key"),
        ("attempt_no", "1"),
        ("traceparent", "00-ab-cd-01"),
        ("mine", "x"),
    ] {
        assert_eq!(header(&record, name), value, "{name}");
    }
    let reference: String = client
        .query_one("SELECT rail_reference FROM outbox.payment_outbox_attempts", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(reference, format!("{}/0@0", topic.name()));
}

#[tokio::test]
async fn drain_delivers_what_is_due_and_exits() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let client = database.connect().await;
    enqueue(&client, "kafka", 10, 1_000).await;
    client
        .execute(
            "SELECT outbox.enqueue_payment_outbox('late', 'late', 'key', 'kafka', '{}', p_not_before => now() + interval '1 hour')",
            &[],
        )
        .await
        .unwrap();
    let mut drain = Setup::kafka(&database, &topic).await.start(&["drain"]);
    assert!(drain.ended().await.success(), "{}", drain.log());
    each_once(&topic, 1_000).await;
    let left: i64 = client
        .query_one(
            "SELECT count(*) FROM outbox.payment_outbox_pending WHERE claimed_by IS NULL",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(left, 1, "the one that is not due");
}

#[tokio::test]
async fn a_transaction_that_is_held_open_while_later_ones_commit_is_not_skipped() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let _bridge = Setup::kafka(&database, &topic).await.run();
    let (slow, quick) = (database.connect().await, database.connect().await);
    slow.batch_execute("BEGIN").await.unwrap();
    slow.batch_execute(
        "SELECT outbox.enqueue_payment_outbox('slow', 'slow', 'key', 'kafka', '{}')",
    )
    .await
    .unwrap();
    enqueue(&quick, "kafka", 5, 100).await;
    assert_eq!(topic.consume(100).await.len(), 100);
    slow.batch_execute("COMMIT").await.unwrap();
    all_done(&database).await;
    each_once(&topic, 101).await;
}
