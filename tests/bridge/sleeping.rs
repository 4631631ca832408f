//! How new work is found.

use std::time::{Duration, Instant};

use crate::process::Setup;
use crate::rows::{all_done, enqueue, wait_for};
use crate::support::{Database, Topic};

/// Far below the poll of these tests, far above what a busy machine needs.
const SOON: Duration = Duration::from_secs(20);
/// Somebody holds the key.
pub(crate) const ASLEEP: &str = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// Every few seconds a bridge looks whether a lane is due. Here it never finds one, so that only the way under test
/// brings it new work.
pub(crate) async fn nobody_sees_what_is_due(database: &Database) {
    database.take_out("waiting_rails", "t.worker_id IS NULL", "false").await;
}

#[tokio::test]
async fn a_sleeping_bridge_is_woken_when_the_poll_is_an_hour() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    nobody_sees_what_is_due(&database).await;
    let _bridge = Setup::kafka(&database, &topic).await.and("[relay]\npoll_ms = 3600000\n").run();
    let client = database.connect().await;
    for _ in 0..5 {
        wait_for(&database, ASLEEP).await;
        let began = Instant::now();
        enqueue(&client, "kafka", 1, 1).await;
        all_done(&database).await;
        assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn two_sleeping_bridges_leave_each_other_wakeable() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    nobody_sees_what_is_due(&database).await;
    let setup = Setup::kafka(&database, &topic).await.and("[relay]\npoll_ms = 3600000\n");
    let (_first, _second) = (setup.run(), setup.run());
    let client = database.connect().await;
    for _ in 0..5 {
        wait_for(&database, ASLEEP).await;
        enqueue(&client, "kafka", 3, 3).await;
        all_done(&database).await;
    }
}

/// Nobody else notices: the session only holds a lock.
#[tokio::test]
async fn a_key_that_went_with_its_session_is_taken_again() {
    const KILL: &str = "SELECT count(*) > 0 FROM (SELECT pg_terminate_backend(pid, 10000) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' \
        AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS killed";
    let (database, topic) = (Database::new().await, Topic::new().await);
    nobody_sees_what_is_due(&database).await;
    let _bridge = Setup::kafka(&database, &topic).await.and("[relay]\npoll_ms = 3600000\n").run();
    wait_for(&database, KILL).await;
    wait_for(&database, ASLEEP).await;
    enqueue(&database.connect().await, "kafka", 1, 1).await;
    all_done(&database).await;
}

#[tokio::test]
async fn polling_alone_finds_the_work() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    nobody_sees_what_is_due(&database).await;
    let _bridge =
        Setup::kafka(&database, &topic).await.and("[relay]\nlisten = false\npoll_ms = 100\n").run();
    let client = database.connect().await;
    // What is there when it starts, it finds without a poll.
    for _ in 0..3 {
        enqueue(&client, "kafka", 3, 30).await;
        all_done(&database).await;
    }
}
