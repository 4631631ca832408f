//! A worker that dies, or stands still, at each step of a batch's way.

use std::os::unix::process::ExitStatusExt as _;

use super::rounds;
use super::scene::Scene;
use crate::rows::{all_done, enqueue, wait_for};

const ROWS: i64 = 300;

#[tokio::test]
async fn every_row_arrives_once_and_in_order() {
    let scene = Scene::new().await;
    let _worker = scene.setup.run();
    enqueue(&scene.database.connect().await, "kafka", 30, ROWS).await;
    scene.is_exact(300).await;
    assert!(scene.recovered().await.is_empty());
}

/// The crash points of docs/exactly-once.md, by the place where the worker dies.
const STEPS: [(&str, &str); 12] = [
    ("C1", "eos_before_init"),
    ("C1", "eos_after_init"),
    ("C2", "claimed"),
    ("C2", "handed_over"),
    ("C3", "eos_sending"),
    ("C4", "eos_sent"),
    ("C4", "eos_before_commit"),
    ("C5", "eos_committing"),
    ("C6", "eos_committed"),
    ("C7", "before_completion"),
    ("C7", "completing"),
    ("C8", "after_completion"),
];

async fn dies_at(point: &str, place: &str) {
    let scene = Scene::new().await;
    enqueue(&scene.database.connect().await, "kafka", 30, ROWS).await;
    let status = scene.setup.doomed(place).ended().await;
    assert_eq!(status.signal(), Some(9), "{point} {place}");
    scene.let_the_leases_pass().await;
    let _heir = scene.setup.run();
    scene.is_exact(300).await;
    if place == "eos_committed" {
        let recovered = scene.recovered().await;
        assert!(recovered.contains_key("RECOVERED_FROM_REGISTER"), "{recovered:?}");
    }
}

#[tokio::test]
async fn a_worker_killed_at_any_step_costs_neither_a_row_nor_a_duplicate() {
    // A few at a time: each has a database, a topic and two workers.
    for some in STEPS.repeat(rounds()).chunks(3) {
        let some = some.iter().map(|(point, place)| dies_at(point, place));
        futures_util::future::join_all(some).await;
    }
}

#[tokio::test]
async fn a_worker_stopped_past_its_lease_and_woken_is_fenced_off() {
    let scene = Scene::new().await;
    let sleeper = scene.setup.run();
    sleeper.logged("the shard is ready").await;
    enqueue(&scene.database.connect().await, "kafka", 50, 5_000).await;
    wait_for(&scene.database, "SELECT count(*) > 0 FROM outbox.payment_outbox_attempts").await;
    sleeper.signal("STOP");
    let _heir = scene.setup.run();
    all_done(&scene.database).await;
    sleeper.signal("CONT");
    enqueue(&scene.database.connect().await, "kafka", 50, 100).await;
    scene.is_exact(5_100).await;
}
