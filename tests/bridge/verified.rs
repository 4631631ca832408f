//! `trestle verify` while bridges are at work, and after one died in the wrong millisecond.

use serde_json::Value;

use crate::process::Setup;
use crate::rows::{all_done, enqueue};
use crate::support::{Database, Topic, trestle};

/// What the command says about the topic; whether it agrees is up to the caller.
async fn verify(database: &Database, topic: &Topic) -> Value {
    let url = database.url_as("symphony_auditor").await;
    let mut command = trestle(&url, &["verify", "--json"]);
    command.env("TRESTLE_RAILS__KAFKA__KIND", "kafka");
    command.env("TRESTLE_RAILS__KAFKA__TOPIC", topic.name());
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(output.status.code(), Some(if report["agrees"] == true { 0 } else { 1 }));
    report
}

#[tokio::test]
async fn rows_that_are_delivered_meanwhile_are_neither_missing_nor_foreign() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    let setup = Setup::kafka(&database, &topic).await;
    let _bridges = [setup.run(), setup.run()];
    let client = database.connect().await;
    let busy = tokio::spawn(async move {
        loop {
            enqueue(&client, "kafka", 20, 200).await;
        }
    });
    for _ in 0..6 {
        let report = verify(&database, &topic).await;
        assert_eq!(report["agrees"], true, "{report}");
    }
    busy.abort();
    let _ = busy.await;
    all_done(&database).await;
    let report = verify(&database, &topic).await;
    assert_eq!(report["agrees"], true, "{report}");
    assert_eq!(report["records"], report["rows"]);
    assert!(report["rows"].as_u64().unwrap() >= 200, "{report}");
}

/// The one window of at-least-once delivery, as it comes about.
#[tokio::test]
async fn what_a_crash_sent_twice_is_a_duplicate_and_no_consumer_loses_a_row() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    let setup = Setup::kafka(&database, &topic).await.and("[relay]\nlease_seconds = 11\n");
    enqueue(&database.connect().await, "kafka", 30, 300).await;
    setup.doomed("before_completion").ended().await;
    let report = verify(&database, &topic).await;
    assert_eq!(report["agrees"], true, "nothing is recorded yet: {report}");
    assert_eq!(report["unrecorded"], report["records"]);
    let _heir = setup.run();
    all_done(&database).await;
    let report = verify(&database, &topic).await;
    assert_eq!(report["rows"], 300);
    let duplicates = report["duplicate"].as_u64().unwrap();
    assert!(duplicates > 0, "{report}");
    assert_eq!(report["records"].as_u64().unwrap(), 300 + duplicates);
    for kind in ["missing", "out_of_order", "foreign", "misplaced"] {
        assert_eq!(report[kind], 0, "{kind}: {report}");
    }
    assert_eq!(report["consumer"]["loses"], 0);
    assert_eq!(report["consumer"]["takes"], 300);
}
