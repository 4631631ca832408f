//! A worker that dies at each step of a row's way.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use crate::process::Setup;
use crate::rows::{all_done, check_order, count, enqueue, wait_for};
use crate::support::{Database, Topic};

/// Where it dies, and whether the broker may have the rows by then.
const STEPS: [(&str, bool); 7] = [
    ("claimed", false),
    ("validated", false),
    ("handed_over", true),
    ("sent", true),
    ("acknowledged", true),
    ("before_completion", true),
    ("after_completion", true),
];
const ROWS: i64 = 300;

#[tokio::test]
async fn a_worker_killed_at_any_step_loses_nothing_and_breaks_no_order() {
    for (step, may_duplicate) in STEPS {
        let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
        let setup = Setup::kafka(&database, &topic).await.and("[relay]\nlease_seconds = 11\n");
        enqueue(&database.connect().await, "kafka", 30, ROWS).await;
        let status = setup.doomed(step).ended().await;
        assert_eq!(status.signal(), Some(9), "{step}");
        let heir = setup.run();
        all_done(&database).await;
        if step == "claimed" {
            heir.logged("repaired an expired lease").await;
        }
        let dispatched = count(&database, "DISPATCHED").await;
        assert_eq!(dispatched, ROWS, "{step}");
        let records = topic.consume(usize::try_from(ROWS).unwrap()).await;
        let duplicates = check_order(&records);
        assert!(may_duplicate || duplicates == 0, "{step}: {duplicates} duplicates");
    }
}

/// A bank that is down makes it give rows back; an expired lease makes it repair.
#[tokio::test]
async fn a_worker_killed_while_giving_back_or_repairing_loses_nothing() {
    for step in ["releasing", "repairing"] {
        let (database, mut topic) = (Database::new().await, Topic::unmade());
        let setup = Setup::kafka(&database, &topic).await.and("[relay]\nlease_seconds = 11\n");
        enqueue(&database.connect().await, "kafka", 5, 20).await;
        let status = setup.doomed(step).ended().await;
        assert_eq!(status.signal(), Some(9), "{step}");
        topic.make(2).await;
        let _heir = setup.run();
        all_done(&database).await;
        assert_eq!(check_order(&topic.consume(20).await), 0, "{step}");
        assert_eq!(count(&database, "DISPATCHED").await, 20);
    }
}

#[tokio::test]
async fn a_worker_stopped_past_its_lease_and_woken_is_refused_and_breaks_no_order() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    let setup = Setup::kafka(&database, &topic).await.and("[relay]\nlease_seconds = 11\n");
    let sleeper = setup.run();
    sleeper.logged("ready").await;
    enqueue(&database.connect().await, "kafka", 50, 5_000).await;
    wait_for(&database, "SELECT count(*) > 0 FROM outbox.payment_outbox_attempts").await;
    sleeper.signal("STOP");
    let _heir = setup.run();
    all_done(&database).await;
    sleeper.signal("CONT");
    enqueue(&database.connect().await, "kafka", 50, 100).await;
    all_done(&database).await;
    check_order(&topic.consume(5_100).await);
    assert_eq!(count(&database, "DISPATCHED").await, 5_100);
}

/// Each of them was given back for ever, because the others, given back beside it, were not written down yet.
#[tokio::test]
async fn rows_that_were_lost_with_two_workers_are_sent_alone_with_the_shortest_lease_too() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    database.control_clock().await;
    let setup = Setup::kafka(&database, &topic).await.and("[relay]\nlease_seconds = 10\n");
    enqueue(&database.connect().await, "kafka", 3, 3).await;
    for _ in 0..2 {
        assert_eq!(setup.doomed("handed_over").ended().await.signal(), Some(9));
        database.advance(Duration::from_secs(20)).await;
    }
    let heir = setup.run();
    all_done(&database).await;
    heir.logged_times("it is sent alone", 3).await;
}
