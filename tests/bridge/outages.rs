//! Destinations that are down: nothing FAILED, nothing counted.

use crate::process::Setup;
use crate::rows::{all_done, all_in_order, count, each_once, enqueue, wait_for};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, Topic};

pub(crate) const COUNTED: &str =
    "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE' AND counted";

pub(crate) async fn nothing_failed_or_counted(database: &Database) {
    assert_eq!(count(database, "FAILED").await, 0);
    let counted: i64 = database.connect().await.query_one(COUNTED, &[]).await.unwrap().get(0);
    assert_eq!(counted, 0);
}

#[tokio::test]
async fn a_topic_that_is_made_later_costs_no_row() {
    let (database, mut topic) = (Database::new().await, Topic::unmade());
    let bridge = Setup::kafka(&database, &topic).await.run();
    enqueue(&database.connect().await, "kafka", 5, 50).await;
    bridge.logged("unavailable").await;
    topic.make(2).await;
    all_done(&database).await;
    each_once(&topic, 50).await;
    nothing_failed_or_counted(&database).await;
}

#[tokio::test]
async fn a_drain_whose_broker_is_away_says_so_and_fails_no_row() {
    let (database, topic, proxy) = (Database::new().await, Topic::new().await, Proxy::to_kafka());
    proxy.set(Mode::TurnAway);
    let setup = Setup::kafka(&database, &topic).await.env("KAFKA_BROKERS", proxy.address());
    enqueue(&database.connect().await, "kafka", 5, 50).await;
    let mut drain = setup.start(&["drain"]);
    assert_eq!(drain.ended().await.code(), Some(1), "{}", drain.log());
    assert!(
        drain.log().contains("a destination of rail \"kafka\" is unavailable"),
        "{}",
        drain.log()
    );
    nothing_failed_or_counted(&database).await;
    proxy.set(Mode::Pass);
    let _bridge = setup.run();
    all_done(&database).await;
    each_once(&topic, 50).await;
}

#[tokio::test]
async fn rows_for_a_rail_that_nobody_runs_stay_pending() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let _bridge = Setup::kafka(&database, &topic).await.run();
    let client = database.connect().await;
    enqueue(&client, "elsewhere", 5, 10).await;
    enqueue(&client, "kafka", 5, 10).await;
    wait_for(&database, "SELECT count(*) = 10 FROM outbox.payment_outbox_attempts").await;
    let waiting = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE rail_type = 'elsewhere' AND lease_token IS NULL";
    assert_eq!(client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0), 10);
}

#[tokio::test]
async fn a_broker_that_is_away_and_comes_back_costs_no_row_and_no_order() {
    let (database, topic, proxy) =
        (Database::new().await, Topic::with_partitions(3).await, Proxy::to_kafka());
    let setup = Setup::kafka(&database, &topic).await.env("KAFKA_BROKERS", proxy.address());
    let client = database.connect().await;
    let bridge = setup.run();
    enqueue(&client, "kafka", 20, 200).await;
    wait_for(&database, "SELECT count(*) = 200 FROM outbox.payment_outbox_attempts").await;
    proxy.set(Mode::Hold);
    enqueue(&client, "kafka", 20, 200).await;
    bridge.logged("unavailable").await;
    proxy.cut();
    proxy.set(Mode::TurnAway);
    enqueue(&client, "kafka", 20, 200).await;
    proxy.set(Mode::Pass);
    all_done(&database).await;
    let duplicates = all_in_order(&topic, 600).await;
    assert!(duplicates <= 200, "{duplicates}, but only 200 were under way");
    assert_eq!(count(&database, "DISPATCHED").await, 600);
    nothing_failed_or_counted(&database).await;
}

/// A few rows fill the queue, and the broker does not answer until they are overdue.
#[tokio::test]
async fn rows_that_a_full_queue_refuses_are_not_claimed_again_and_again_meanwhile() {
    const CLAIMS: &str =
        "SELECT count(*) FROM outbox.payment_outbox_events WHERE event_type = 'LEASE_CLAIMED'";
    let (database, topic, proxy) = (Database::new().await, Topic::new().await, Proxy::to_kafka());
    let setup = Setup::kafka(&database, &topic)
        .await
        .and("[rails.kafka.properties]\n\"queue.buffering.max.kbytes\" = \"1\"\n");
    let bridge = setup.env("KAFKA_BROKERS", proxy.address()).run();
    let client = database.connect().await;
    enqueue(&client, "kafka", 1, 1).await;
    all_done(&database).await;
    proxy.set(Mode::Hold);
    enqueue(&client, "kafka", 99, 99).await;
    bridge.logged("unavailable").await;
    let claims: i64 = client.query_one(CLAIMS, &[]).await.unwrap().get(0);
    assert!((3..=30).contains(&claims), "{claims} claims in the few seconds of a time-out");
    proxy.cut();
    proxy.set(Mode::Pass);
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 100);
    nothing_failed_or_counted(&database).await;
}
