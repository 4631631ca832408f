//! SIGTERM: nothing is doubled, nothing waits for a lease.

use crate::process::Setup;
use crate::rows::{all_done, all_in_order, count, each_once, enqueue, wait_for};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, Topic};

pub(crate) const NOTHING_LEASED: &str =
    "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE lease_token IS NOT NULL)";
const ONE_WORKER: &str = "SELECT count(*) = 1 AND bool_and(live AND rail_types = 'kafka') FROM outbox.outbox_worker_status";
const GIVEN_UP: &str = "SELECT count(*) > 0 AND bool_and(error_code = 'KAFKA_ABANDONED' AND NOT counted) \
    FROM outbox.payment_outbox_attempts WHERE state <> 'DISPATCHED'";
const SOME_DONE: &str = "SELECT count(*) >= 500 FROM outbox.payment_outbox_attempts";

#[tokio::test]
async fn a_rolling_restart_under_load_makes_no_duplicate_and_leaves_no_lease() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(4).await);
    let setup = Setup::kafka(&database, &topic).await;
    let (mut first, mut second) = (setup.run(), setup.run());
    enqueue(&database.connect().await, "kafka", 100, 10_000).await;
    for worker in [&mut first, &mut second] {
        wait_for(&database, SOME_DONE).await;
        worker.signal("TERM");
        assert!(worker.ended().await.success(), "{}", worker.log());
    }
    wait_for(&database, NOTHING_LEASED).await;
    let _third = setup.run();
    all_done(&database).await;
    each_once(&topic, 10_000).await;
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 0);
}

#[tokio::test]
async fn an_idle_bridge_says_that_it_is_there_and_stops_at_once_with_a_goodbye() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let mut bridge = Setup::kafka(&database, &topic).await.run();
    wait_for(&database, ONE_WORKER).await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    wait_for(&database, "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_workers)").await;
}

#[tokio::test]
async fn a_second_signal_gives_up_what_is_under_way_and_loses_nothing() {
    let (database, topic, proxy) = (Database::new().await, Topic::new().await, Proxy::to_kafka());
    let setup = Setup::kafka(&database, &topic).await;
    // Whoever waits for the broker ends with another code, and much later.
    let setup = setup.instead("timeout_seconds = 5", "timeout_seconds = 30");
    let mut bridge = setup.clone().env("KAFKA_BROKERS", proxy.address()).run();
    let client = database.connect().await;
    enqueue(&client, "kafka", 5, 50).await;
    wait_for(&database, "SELECT count(*) = 50 FROM outbox.payment_outbox_attempts").await;
    proxy.set(Mode::LoseAnswers);
    enqueue(&client, "kafka", 5, 50).await;
    topic.consume(51).await;
    bridge.signal("TERM");
    bridge.logged("asked to stop").await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    wait_for(&database, NOTHING_LEASED).await;
    wait_for(&database, GIVEN_UP).await;
    let _heir = setup.run();
    all_done(&database).await;
    let duplicates = all_in_order(&topic, 100).await;
    assert!(duplicates <= 50, "{duplicates}, but only 50 were under way");
    assert_eq!(count(&database, "DISPATCHED").await, 100);
    assert_eq!(count(&database, "FAILED").await, 0);
}
