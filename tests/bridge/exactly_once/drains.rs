//! `trestle drain` on a rail with shards.

use super::scene::Scene;
use crate::rows::{count, enqueue};

/// The first shard that is ready has nothing, or little: the others may still be on their way.
#[tokio::test]
async fn a_drain_takes_every_shard_up_before_it_ends() {
    let scene = Scene::with_shards(16, "").await;
    enqueue(&scene.database.connect().await, "kafka", 20, 20).await;
    let mut drain = scene.setup.start(&["drain"]);
    assert!(drain.ended().await.success(), "{}", drain.log());
    assert_eq!(count(&scene.database, "DISPATCHED").await, 20);
    scene.is_exact(20).await;
}

/// They are due a second after somebody has found out that they were not sent.
#[tokio::test]
async fn a_drain_waits_for_the_rows_of_a_worker_that_died() {
    let scene = Scene::new().await;
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    scene.setup.doomed("eos_sending").ended().await;
    scene.let_the_leases_pass().await;
    let mut drain = scene.setup.start(&["drain"]);
    assert!(drain.ended().await.success(), "{}", drain.log());
    assert_eq!(count(&scene.database, "DISPATCHED").await, 100);
    assert!(count(&scene.database, "ZOMBIE_REQUEUE").await > 0);
    scene.is_exact(100).await;
}

#[tokio::test]
async fn a_drain_beside_a_halted_shard_says_so_and_delivers_the_rest() {
    let scene = Scene::with_shards(2, "").await;
    let client = scene.database.connect().await;
    let halt = "UPDATE outbox.payment_outbox_shards SET halted_at = clock_timestamp(), halted_reason = 'test' WHERE shard = 0";
    client.batch_execute(halt).await.unwrap();
    enqueue(&client, "kafka", 20, 20).await;
    let mut drain = scene.setup.start(&["drain"]);
    assert_eq!(drain.ended().await.code(), Some(1));
    let log = drain.log();
    assert!(log.contains("a shard of rail \"kafka\" is halted"), "{log}");
    let left = "SELECT count(*) FROM outbox.payment_outbox_pending";
    let left: i64 = client.query_one(left, &[]).await.unwrap().get(0);
    assert!(left > 0 && left < 20, "{left}");
    assert_eq!(count(&scene.database, "DISPATCHED").await, 20 - left);
}
