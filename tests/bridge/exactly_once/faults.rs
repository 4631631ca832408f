//! What fails around a worker: the network, the database, one record.

use std::time::Duration;

use super::scene::Scene;
use crate::rows::{all_done, count, enqueue, lanes, wait_for};
use crate::support::proxy::{Mode, Proxy};

/// Rows come in all the time while `fault` does what it does.
async fn under_load(scene: &Scene, batches: i64, fault: impl AsyncFn(i64)) {
    let client = scene.database.connect().await;
    for batch in 0..batches {
        enqueue(&client, "kafka", 40, 200).await;
        fault(batch).await;
        let some = format!(
            "SELECT count(*) > {} FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'",
            batch * 100
        );
        wait_for(&scene.database, &some).await;
    }
}

#[tokio::test]
async fn a_broker_that_is_cut_off_now_and_then_costs_neither_a_row_nor_a_duplicate() {
    let (scene, proxy) = (Scene::new().await, Proxy::to_kafka());
    let worker = scene.setup.clone().env("KAFKA_BROKERS", proxy.address()).run();
    worker.logged("the shard is ready").await;
    under_load(&scene, 6, async |batch| {
        match batch {
            1 | 3 => proxy.cut(),
            2 => proxy.strand(),
            4 => {
                // Commits may get through whose answers do not.
                proxy.set(Mode::LoseAnswers);
                tokio::time::sleep(Duration::from_millis(300)).await;
                proxy.cut();
                proxy.set(Mode::Pass);
            }
            _ => {}
        }
    })
    .await;
    scene.is_exact(1_200).await;
}

#[tokio::test]
async fn a_database_that_is_cut_off_now_and_then_costs_neither_a_row_nor_a_duplicate() {
    let (scene, proxy) = (Scene::new().await, Proxy::to_postgres());
    let url = scene.database.url_as("symphony_executor").await;
    let worker = scene.setup.clone().env("DATABASE_URL", &proxy.instead_in(&url)).run();
    worker.logged("the shard is ready").await;
    under_load(&scene, 6, async |batch| {
        match batch {
            1 | 3 => proxy.cut(),
            4 => {
                // Outcomes may be written whose answers get lost.
                proxy.set(Mode::LoseAnswers);
                tokio::time::sleep(Duration::from_millis(300)).await;
                proxy.cut();
                proxy.set(Mode::Pass);
            }
            _ => {}
        }
    })
    .await;
    scene.is_exact(1_200).await;
}

#[tokio::test]
async fn a_row_that_is_too_large_fails_alone_and_in_its_order() {
    let scene = Scene::new().await;
    let client = scene.database.connect().await;
    enqueue(&client, "kafka", 4, 40).await;
    let large = "SELECT outbox.enqueue_payment_outbox('large', 'p1', 'k', 'kafka', jsonb_build_object('x', repeat('x', 1100000)))";
    client.batch_execute(large).await.unwrap();
    enqueue(&client, "kafka", 4, 40).await;
    let _worker = scene.setup.run();
    let rail_is_done =
        "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE rail_type = 'kafka')";
    wait_for(&scene.database, rail_is_done).await;
    assert_eq!(count(&scene.database, "FAILED").await, 1);
    let records = scene.topic.consume_committed().await;
    assert_eq!(records.len(), 80);
}

/// The topic's limit is lowered behind our back, so that the broker itself refuses a transaction's records.
#[tokio::test]
async fn a_record_that_the_broker_refuses_in_the_middle_of_a_batch_fails_alone() {
    let scene = Scene::with_shards(1, "").await;
    let client = scene.database.connect().await;
    let worker = scene.setup.run();
    enqueue(&client, "kafka", 4, 4).await;
    all_done(&scene.database).await;
    scene.topic.alter("max.message.bytes", "3000").await;
    let rows = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object( \
        'instruction_id', 'i' || g, 'participant_id', 'p' || g % 4, 'idempotency_key', 'k', 'rail_type', 'kafka', \
        'payload', jsonb_build_object('x', repeat('x', CASE g WHEN 18 THEN 4000 ELSE 1 END))) ORDER BY g) FROM generate_series(1, 40) AS g))";
    client.batch_execute(rows).await.unwrap();
    let rail_is_done =
        "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE rail_type = 'kafka')";
    wait_for(&scene.database, rail_is_done).await;
    worker.logged("a transaction did not succeed for certain").await;
    let failed = "SELECT count(*) = 1 AND bool_and(instruction_id = 'i18') \
        FROM outbox.payment_outbox_attempts WHERE state = 'FAILED'";
    wait_for(&scene.database, failed).await;
    let records = scene.topic.consume_committed().await;
    assert_eq!(records.len(), 43);
    for (lane, numbers) in lanes(&records) {
        assert!(numbers.is_sorted_by(|one, next| one < next), "{lane}: {numbers:?}");
    }
}
