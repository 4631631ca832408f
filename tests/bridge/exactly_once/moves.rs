//! Shards that move, a rail that is switched, a database that has lost its last commits.

use std::time::{Duration, Instant};

use super::scene::Scene;
use crate::rows::{all_done, check_order, count, enqueue, wait_for};

const OWNERS: &str = "SELECT count(DISTINCT owner) = 2 AND bool_and(ready) \
    AND count(*) FILTER (WHERE owner = (SELECT min(owner) FROM outbox.payment_outbox_shards)) = 2 FROM outbox.payment_outbox_shards";

#[tokio::test]
async fn workers_share_the_shards_and_hand_them_over_without_waiting_for_a_lease() {
    let scene = Scene::new().await;
    let mut first = scene.setup.run();
    first.logged_times("the shard is ready", 4).await;
    let second = scene.setup.run();
    wait_for(&scene.database, OWNERS).await;
    enqueue(&scene.database.connect().await, "kafka", 40, 400).await;
    first.signal("TERM");
    assert!(first.ended().await.success());
    let gone = Instant::now();
    second.logged_times("the shard is ready", 4).await;
    scene.is_exact(400).await;
    // A lease has ten seconds.
    assert!(gone.elapsed() < Duration::from_secs(8), "{:?}", gone.elapsed());
    assert_eq!(count(&scene.database, "ZOMBIE_REQUEUE").await, 0);
}

/// Under load nearly every moment has a claim on its way. A batch that comes for a shard which has just gone is found out
/// about, but costs its rows a second, and a mark against them.
#[tokio::test]
async fn shards_that_are_handed_over_under_load_take_no_batch_with_them() {
    let scene = Scene::with_shards(8, "").await;
    let client = scene.database.connect().await;
    let first = scene.setup.run();
    first.logged_times("the shard is ready", 8).await;
    enqueue(&client, "kafka", 100, 6_000).await;
    let delivered = |rows: i64| {
        format!(
            "SELECT count(*) > {rows} FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'"
        )
    };
    wait_for(&scene.database, &delivered(100)).await;
    let second = scene.setup.run();
    second.logged("the shard is ready").await;
    let mut third = scene.setup.run();
    third.logged("the shard is ready").await;
    enqueue(&client, "kafka", 100, 2_000).await;
    third.signal("TERM");
    assert!(third.ended().await.success(), "{}", third.log());
    scene.is_exact(8_000).await;
    assert_eq!(count(&scene.database, "ZOMBIE_REQUEUE").await, 0);
}

#[tokio::test]
async fn a_rail_is_switched_to_exactly_once_and_back_with_rows_pending() {
    let scene = Scene::new().await;
    let client = scene.database.connect().await;
    let (exactly_once, idempotent) =
        (scene.setup.clone(), scene.setup.clone().instead("exactly_once", "idempotent"));
    for (setup, delivery) in [
        (&idempotent, "idempotent"),
        (&exactly_once, "exactly_once"),
        (&idempotent, "idempotent"),
        (&exactly_once, "exactly_once"),
    ] {
        enqueue(&client, "kafka", 20, 100).await;
        let policies = format!(
            "SELECT outbox.set_rail_policies('{{\"kafka\": {{\"delivery\": \"{delivery}\", \"shards\": 4}}}}', 'test', 'test')"
        );
        client.batch_execute(&policies).await.unwrap();
        enqueue(&client, "kafka", 20, 100).await;
        let mut worker = setup.run();
        wait_for(&scene.database, "SELECT count(*) > 0 FROM outbox.payment_outbox_attempts").await;
        all_done(&scene.database).await;
        worker.signal("TERM");
        assert!(worker.ended().await.success());
    }
    let records = scene.topic.consume_committed().await;
    assert_eq!((check_order(&records), records.len()), (0, 800));
}

/// A standby that lagged, or a backup: the rows are pending again, nobody knows of their claims, and the
/// register is ahead.
#[tokio::test]
async fn a_database_that_has_lost_its_last_commits_sends_nothing_again() {
    let mut scene = Scene::new().await;
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    let mut worker = scene.setup.run();
    all_done(&scene.database).await;
    worker.signal("TERM");
    assert!(worker.ended().await.success());
    enqueue(&scene.database.connect().await, "kafka", 20, 200).await;
    scene.deliver_and_forget().await;
    let _heir = scene.setup.run();
    scene.is_exact(300).await;
    assert_eq!(recovered(&scene).await, 200);
}

/// It does not even know that there are places from which to read: the register remembers them.
#[tokio::test]
async fn a_database_that_has_forgotten_the_first_use_of_its_shards_sends_nothing_again() {
    let mut scene = Scene::new().await;
    let client = scene.database.connect().await;
    enqueue(&client, "kafka", 20, 200).await;
    drop(client);
    let topics = scene.deliver_and_forget().await;
    assert_eq!(topics, 0, "the copy knows places");
    let mut heir = scene.setup.run();
    scene.is_exact(200).await;
    assert_eq!(recovered(&scene).await, 200);
    heir.signal("TERM");
    assert!(heir.ended().await.success());
    // Its origin goes on from entry to entry, whoever writes them.
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    let _next = scene.setup.run();
    scene.is_exact(300).await;
    assert_eq!(recovered(&scene).await, 200);
}

async fn recovered(scene: &Scene) -> i64 {
    scene.recovered().await.values().sum()
}
