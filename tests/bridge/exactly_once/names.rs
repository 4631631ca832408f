//! Who sent a batch, and which of the records in a topic are its own.

use super::scene::Scene;
use crate::rows::{count, enqueue};

/// It fences nobody off, and does not know the records of the one before by their mark.
#[tokio::test]
async fn a_worker_with_another_prefix_leaves_a_batch_under_way_alone() {
    let scene = Scene::new().await;
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    scene.setup.doomed("eos_committed").ended().await;
    scene.let_the_leases_pass().await;
    let prefix = format!("transactional_id_prefix = \"{}", scene.topic.name());
    let other = scene.setup.clone().instead(&prefix, &format!("{prefix}.other"));
    let mut other = other.run();
    other.logged("was sent as").await;
    other.signal("TERM");
    assert!(other.ended().await.success(), "{}", other.log());
    scene.let_the_leases_pass().await;
    let _heir = scene.setup.run();
    scene.is_exact(100).await;
    assert_eq!(count(&scene.database, "DISPATCHED").await, 100);
}

/// With nothing under way there is nothing that could be taken for another's.
#[tokio::test]
async fn a_prefix_can_be_changed_when_every_worker_has_stopped_in_good_order() {
    let scene = Scene::new().await;
    let client = scene.database.connect().await;
    let prefix = format!("transactional_id_prefix = \"{}", scene.topic.name());
    let other = scene.setup.clone().instead(&prefix, &format!("{prefix}.other"));
    let mut rows = 0;
    for setup in [&scene.setup, &other, &scene.setup] {
        enqueue(&client, "kafka", 20, 100).await;
        rows += 100;
        let mut worker = setup.run();
        scene.is_exact(rows).await;
        worker.signal("TERM");
        assert!(worker.ended().await.success(), "{}", worker.log());
    }
}

/// A producer's own headers have the names of ours.
#[tokio::test]
async fn the_headers_of_a_producer_do_not_hide_whose_record_it_is() {
    const ENQUEUE: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((
        SELECT jsonb_agg(jsonb_build_object('instruction_id', gen_random_uuid(), 'participant_id', 'p' || g % 5, 'idempotency_key', 'key',
          'rail_type', 'kafka', 'payload', '{}'::jsonb, 'headers', jsonb_build_object('trestle_batch', 'mine', 'id', 'mine')) ORDER BY g)
        FROM generate_series(1, 50) AS g))";
    let scene = Scene::new().await;
    scene.database.connect().await.batch_execute(ENQUEUE).await.unwrap();
    scene.setup.doomed("eos_committed").ended().await;
    scene.let_the_leases_pass().await;
    let _heir = scene.setup.run();
    scene.is_exact(50).await;
    assert!(scene.recovered().await.values().sum::<i64>() > 0);
}
