//! Destinations that are down: nothing FAILED, nothing counted.

use crate::process::Setup;
use crate::rows::{all_done, all_in_order, count, each_once, enqueue, wait_for};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, OwnKafka, Topic};

pub(crate) const COUNTED: &str =
    "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE' AND counted";

const CLAIMS: &str =
    "SELECT count(*) FROM outbox.payment_outbox_events WHERE event_type = 'LEASE_CLAIMED'";

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

/// One of the rail's two topics is missing; the rows of the other do not wait for it.
#[tokio::test]
async fn a_topic_that_is_missing_stops_no_other_topic_of_its_rail() {
    let (database, topic, mut missing) =
        (Database::new().await, Topic::new().await, Topic::unmade());
    let setup = Setup::kafka(&database, &topic).await;
    let bridge = setup.and(&format!("topics = [\"{}\"]\n", missing.name())).run();
    let client = database.connect().await;
    let elsewhere = format!(
        "SELECT count((outbox.enqueue_payment_outbox('i' || g, 'elsewhere', 'k', 'kafka', '{{}}', '{{\"topic\": \"{}\"}}')).outbox_id) \
         FROM generate_series(1, 10) AS g",
        missing.name()
    );
    client.batch_execute(&elsewhere).await.unwrap();
    bridge.logged("unavailable").await;
    for round in 1..=3 {
        enqueue(&client, "kafka", 1, 10).await;
        let delivered = format!(
            "SELECT count(*) = {} AND bool_and(participant_id = 'p0') \
             FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'",
            round * 10
        );
        wait_for(&database, &delivered).await;
    }
    assert!(!bridge.log().contains("available again"), "{}", bridge.log());
    missing.make(1).await;
    all_done(&database).await;
    each_once(&topic, 30).await;
    each_once(&missing, 10).await;
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
    let claims: i64 = client.query_one(CLAIMS, &[]).await.unwrap().get(0);
    // A probe after a probe: the first has found nobody.
    wait_for(&database, &format!("SELECT ({CLAIMS}) >= {}", claims + 2)).await;
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
    assert!((3..=100).contains(&claims), "{claims} claims in the few seconds of a time-out");
    proxy.cut();
    proxy.set(Mode::Pass);
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 100);
    nothing_failed_or_counted(&database).await;
}

/// A real one, which is killed in the middle of its work and comes back with what it had.
#[tokio::test]
async fn a_broker_that_is_killed_and_comes_back_costs_no_row_and_no_order() {
    let kafka = OwnKafka::start().await;
    let (database, topic) = (Database::new().await, Topic::on(&kafka.address()).await);
    let setup = Setup::kafka(&database, &topic).await.env("KAFKA_BROKERS", &kafka.address());
    let (bridge, client) = (setup.run(), database.connect().await);
    enqueue(&client, "kafka", 20, 4_000).await;
    wait_for(&database, "SELECT count(*) > 300 FROM outbox.payment_outbox_attempts").await;
    kafka.kill();
    bridge.logged("unavailable").await;
    enqueue(&client, "kafka", 20, 200).await;
    kafka.start_again();
    all_done(&database).await;
    all_in_order(&topic, 4_200).await;
    assert_eq!(count(&database, "DISPATCHED").await, 4_200);
    nothing_failed_or_counted(&database).await;
}
