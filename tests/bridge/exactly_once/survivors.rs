//! Workers that live on: under a database that has lost its last commits, and behind a row that is refused.

use std::os::unix::process::ExitStatusExt as _;

use tokio_postgres::Client;

use super::scene::Scene;
use super::{rounds, together};
use crate::rows::{count, enqueue, lanes, wait_for};
use crate::support::Database;

/// Where a worker is when the server that it talks to is gone, and with it the claim of its batch: the
/// replica that takes its place had not heard of it.
const PLACES: [&str; 6] = [
    "claimed",
    "eos_before_begin",
    "eos_sending",
    "eos_committed",
    "before_completion",
    "after_completion",
];

/// A replica has everything but the claim; the worker goes on with it.
async fn survives_at(place: &str) -> (Scene, Database) {
    let scene = Scene::new().await;
    let worker = scene.setup.clone().env("TRESTLE_FAILPOINT", &format!("stop:{place}")).run();
    worker.logged_times("the shard is ready", 4).await;
    worker.signal("STOP");
    worker.stopped().await;
    enqueue(&scene.database.connect().await, "kafka", 20, 200).await;
    scene.database.end_connections().await;
    let replica = scene.database.copy().await;
    worker.signal("CONT");
    worker.stopped().await;
    scene.database.fail_over_to(&replica).await;
    worker.signal("CONT");
    scene.is_exact(200).await;
    enqueue(&scene.database.connect().await, "kafka", 20, 200).await;
    scene.is_exact(400).await;
    assert_eq!(halted(&scene.database.connect().await).await, 0);
    (scene, replica)
}

/// The replica does not even know that the worker has taken the shards: it takes them in the same epoch again.
#[tokio::test]
async fn a_worker_that_survives_the_loss_of_its_shards_sends_no_row_again() {
    let scene = Scene::new().await;
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    let mut before = scene.setup.run();
    scene.is_exact(100).await;
    before.signal("TERM");
    assert!(before.ended().await.success());
    enqueue(&scene.database.connect().await, "kafka", 20, 200).await;
    scene.database.end_connections().await;
    let replica = scene.database.copy().await;
    let worker = scene.setup.clone().env("TRESTLE_FAILPOINT", "stop:eos_committed").run();
    worker.stopped().await;
    scene.database.fail_over_to(&replica).await;
    worker.signal("CONT");
    scene.is_exact(300).await;
    enqueue(&scene.database.connect().await, "kafka", 20, 200).await;
    scene.is_exact(500).await;
}

async fn halted(client: &Client) -> i64 {
    let halted = "SELECT count(*) FROM outbox.payment_outbox_shards WHERE halted_at IS NOT NULL";
    client.query_one(halted, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_worker_that_survives_the_loss_of_its_claim_sends_no_row_again() {
    for some in PLACES.repeat(rounds()).chunks(3) {
        together(some.iter().map(|place| survives_at(place))).await;
    }
}

/// In each lane the second of three rows is refused: by its schema, or because no topic takes it.
const HOLES: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((
    SELECT jsonb_agg(jsonb_build_object('instruction_id', 'i' || g, 'participant_id', 'p' || g % 6, 'idempotency_key', 'key',
      'rail_type', 'kafka', 'payload', jsonb_build_object('currency', 'EUR', 'amount', CASE WHEN g BETWEEN 6 AND 8 THEN '0.00' ELSE '10.00' END,
        'x', repeat('x', CASE WHEN g BETWEEN 9 AND 11 THEN 1100000 ELSE 1 END))) ORDER BY g)
    FROM generate_series(0, 17) AS g))";

async fn dies_behind_a_refused_row_at(place: &str) -> Scene {
    let scene = Scene::with_shards(2, "").await;
    let setup = scene.setup.clone().instead("schema = \"any\"", "schema = \"payment\"");
    let client = scene.database.connect().await;
    client.batch_execute(HOLES).await.unwrap();
    let status = setup.doomed(place).ended().await;
    assert_eq!(status.signal(), Some(9), "{place}");
    scene.let_the_leases_pass().await;
    let _heir = setup.run();
    let rail_is_done = "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE rail_type = 'kafka') \
        OR EXISTS (SELECT FROM outbox.payment_outbox_shards WHERE halted_at IS NOT NULL)";
    wait_for(&scene.database, rail_is_done).await;
    assert_eq!(halted(&client).await, 0, "{place}");
    assert_eq!(count(&scene.database, "FAILED").await, 6, "{place}");
    let records = scene.topic.consume_committed().await;
    for (lane, numbers) in lanes(&records) {
        assert_eq!(numbers, [1, 3], "{place}: {lane}");
    }
    assert_eq!(records.len(), 12, "{place}");
    scene
}

#[tokio::test]
async fn a_worker_that_dies_with_a_refused_row_in_mid_lane_halts_nothing() {
    let places = ["eos_committed", "before_completion", "completing"].repeat(rounds());
    for some in places.chunks(3) {
        let some = some.iter().map(|place| dies_behind_a_refused_row_at(place));
        together(some).await;
    }
}
