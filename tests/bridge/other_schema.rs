//! A bridge and an outbox of another version.

use crate::process::Setup;
use crate::rows::{all_done, enqueue};
use crate::support::{Database, Topic};

/// Whoever made the outbox: a trestle of this version.
async fn made_by(database: &Database, version: &str) {
    let change = "UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = $1";
    database.connect().await.execute(change, &[&version]).await.unwrap();
}

/// `run` and `drain` end before they touch a row, and say all of this.
async fn is_refused(database: &Database, words: &[&str]) {
    let setup = Setup::kafka(database, &Topic::unmade()).await;
    for command in ["run", "drain"] {
        let mut bridge = setup.start(&[command]);
        assert_eq!(bridge.ended().await.code(), Some(1), "{command}: {}", bridge.log());
        let own = concat!("this is trestle ", env!("CARGO_PKG_VERSION"), " (migration ");
        for word in words.iter().chain(&[own, "run `trestle migrate` first"]) {
            assert!(bridge.log().contains(word), "{command}: not {word}: {}", bridge.log());
        }
    }
}

#[tokio::test]
async fn an_outbox_that_is_older_is_refused_with_both_versions() {
    let database = Database::new().await;
    made_by(&database, "0.0.1").await;
    is_refused(&database, &["older than this binary", "that of trestle 0.0.1 (migration "]).await;
    let database = Database::new().await;
    let undo = "DELETE FROM outbox.schema_history WHERE version > 3";
    database.connect().await.batch_execute(undo).await.unwrap();
    is_refused(&database, &["older than this binary", "(migration 3), and"]).await;
}

#[tokio::test]
async fn an_outbox_that_is_missing_or_cannot_tell_its_version_is_refused() {
    let words = ["there is no outbox in this database, or one that is too old"];
    is_refused(&Database::empty().await, &words).await;
    let database = Database::new().await;
    let drop = "DROP FUNCTION outbox.outbox_schema_version()";
    database.connect().await.batch_execute(drop).await.unwrap();
    is_refused(&database, &words).await;
}

/// Schemas are migrated first: until it is restarted, and if it has to be, an old worker works with a new one.
#[tokio::test]
async fn a_bridge_works_with_an_outbox_that_is_newer() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    made_by(&database, "99.1.2").await;
    enqueue(&database.connect().await, "kafka", 2, 4).await;
    let mut bridge = Setup::kafka(&database, &topic).await.start(&["drain"]);
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    all_done(&database).await;
    assert!(bridge.log().contains("the outbox is that of trestle 99.1.2"), "{}", bridge.log());
}
