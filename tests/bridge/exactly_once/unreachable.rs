//! A worker that reaches the database and not the broker.

use std::time::{Duration, Instant};

use super::company::shared_by;
use super::scene::Scene;
use crate::rows::{enqueue, wait_for};
use crate::support::proxy::{Mode, Proxy};

const TWO_OWNERS: &str = "SELECT count(DISTINCT owner) = 2 FROM outbox.payment_outbox_shards";

#[tokio::test]
async fn a_worker_without_a_broker_leaves_its_shards_to_others_until_it_has_one() {
    let (scene, proxy) = (Scene::new().await, Proxy::to_kafka());
    proxy.set(Mode::TurnAway);
    // Thirty seconds are five.
    let hurried = scene.setup.clone().env("TRESTLE_HURRY", "6");
    let cut_off = hurried.env("KAFKA_BROKERS", proxy.address()).run();
    wait_for(
        &scene.database,
        "SELECT bool_and(owner IS NOT NULL) AND count(*) = 4 FROM outbox.payment_outbox_shards",
    )
    .await;
    let _other = scene.setup.run();
    enqueue(&scene.database.connect().await, "kafka", 40, 200).await;
    scene.is_exact(200).await;
    cut_off.logged("gives up its shards").await;
    // Nobody counts on it.
    wait_for(
        &scene.database,
        "SELECT count(DISTINCT owner) = 1 AND bool_and(ready) FROM outbox.payment_outbox_shards",
    )
    .await;
    proxy.set(Mode::Pass);
    wait_for(&scene.database, TWO_OWNERS).await;
    cut_off.logged("the shard is ready").await;
    enqueue(&scene.database.connect().await, "kafka", 40, 200).await;
    scene.is_exact(400).await;
}

/// It stands still, so that none of its shards would notice.
#[tokio::test]
async fn a_worker_that_is_cut_off_while_it_is_idle_leaves_its_shards_to_others() {
    let (scene, proxy) = (Scene::new().await, Proxy::to_kafka());
    // Thirty seconds are five.
    let hurried = scene.setup.clone().env("TRESTLE_HURRY", "6");
    let cut_off = hurried.env("KAFKA_BROKERS", proxy.address()).run();
    cut_off.logged_times("the shard is ready", 4).await;
    let _other = scene.setup.run();
    shared_by(&scene, 2).await;
    proxy.set(Mode::TurnAway);
    proxy.cut();
    cut_off.logged("gives up its shards").await;
    shared_by(&scene, 1).await;
    enqueue(&scene.database.connect().await, "kafka", 40, 200).await;
    scene.is_exact(200).await;
    proxy.set(Mode::Pass);
    shared_by(&scene, 2).await;
    enqueue(&scene.database.connect().await, "kafka", 40, 200).await;
    scene.is_exact(400).await;
}

/// Its shards wait for a broker, for longer than anybody waits for its end.
#[tokio::test]
async fn a_second_signal_ends_a_worker_without_a_broker() {
    let (scene, proxy) = (Scene::new().await, Proxy::to_kafka());
    proxy.set(Mode::TurnAway);
    let patient = scene.setup.clone().instead("timeout_seconds = 5", "timeout_seconds = 20");
    let patient = patient.instead("lease_seconds = 10", "lease_seconds = 60");
    let mut cut_off = patient.env("KAFKA_BROKERS", proxy.address()).run();
    wait_for(
        &scene.database,
        "SELECT bool_and(owner IS NOT NULL) AND count(*) = 4 FROM outbox.payment_outbox_shards",
    )
    .await;
    cut_off.signal("TERM");
    cut_off.logged("asked to stop").await;
    cut_off.signal("TERM");
    let began = Instant::now();
    cut_off.ended().await;
    assert!(began.elapsed() < Duration::from_secs(10), "{}", cut_off.log());
}

#[tokio::test]
async fn a_drain_without_a_broker_says_so() {
    let (scene, proxy) = (Scene::new().await, Proxy::to_kafka());
    proxy.set(Mode::TurnAway);
    enqueue(&scene.database.connect().await, "kafka", 5, 20).await;
    let setup = scene.setup.clone().env("TRESTLE_HURRY", "30");
    let mut drain = setup.env("KAFKA_BROKERS", proxy.address()).start(&["drain"]);
    assert_eq!(drain.ended().await.code(), Some(1), "{}", drain.log());
    let said = "a destination of rail \"kafka\" is unavailable";
    assert!(drain.log().contains(said), "{}", drain.log());
    let _worker = scene.setup.run();
    scene.is_exact(20).await;
}
