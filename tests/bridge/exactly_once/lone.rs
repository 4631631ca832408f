//! Batches of one row. Their record itself says whether they were committed, so they have no entry in the register.

use super::scene::Scene;
use super::{rounds, together};
use crate::process::Bridge;
use crate::rows::{all_done, enqueue};
use crate::support::Database;

const READY: &str = "the shard is ready";

/// Each of them a batch of its own.
async fn one_by_one(scene: &Scene, rows: usize) {
    let client = scene.database.connect().await;
    for _ in 0..rows {
        enqueue(&client, "kafka", 1, 1).await;
        all_done(&scene.database).await;
    }
}

/// How many batches of the only shard the register tells of.
async fn entries(scene: &mut Scene) -> usize {
    scene.register.is_there(1);
    let own = format!("{}/kafka/0", scene.topic.name());
    let records = scene.register.consume_committed().await;
    records.iter().filter(|record| record.key.as_deref() == Some(own.as_bytes())).count()
}

#[tokio::test]
async fn of_single_rows_only_the_first_of_an_owner_is_entered() {
    let mut scene = Scene::with_shards(1, "").await;
    for owner in 1..=2 {
        let mut worker = scene.setup.run();
        one_by_one(&scene, 5).await;
        worker.signal("TERM");
        assert!(worker.ended().await.success());
        assert_eq!(entries(&mut scene).await, owner);
    }
    scene.is_exact(10).await;
}

#[tokio::test]
async fn a_topic_that_forgets_records_has_every_single_row_entered() {
    let mut scene = Scene::with_shards(1, "").await;
    scene.topic.alter("cleanup.policy", "compact,delete").await;
    let _worker = scene.setup.run();
    one_by_one(&scene, 5).await;
    assert_eq!(entries(&mut scene).await, 5);
    scene.is_exact(5).await;
}

/// A worker that dies here with its second row, which is not entered.
async fn dies_at(place: &str) -> Scene {
    let scene = Scene::with_shards(1, "").await;
    let mut doomed = scene.setup.doomed(&format!("{place}@2"));
    one_by_one(&scene, 1).await;
    enqueue(&scene.database.connect().await, "kafka", 1, 1).await;
    doomed.ended().await;
    scene.let_the_leases_pass().await;
    let _heir = scene.setup.run();
    scene.is_exact(2).await;
    let from_tail = scene.recovered().await.get("RECOVERED_FROM_TAIL").copied();
    assert_eq!(from_tail, (place != "eos_sent").then_some(1), "{place}");
    scene
}

#[tokio::test]
async fn a_single_row_that_was_committed_is_found_in_the_topic_and_one_that_was_not_goes_again() {
    let places = ["eos_sent", "eos_committed", "before_completion"].repeat(rounds());
    for some in places.chunks(3) {
        together(some.iter().map(|place| dies_at(place))).await;
    }
}

/// Nothing is under way as far as the database knows, and the register has nothing that is new. Returns whoever is next,
/// without this guard.
async fn loses_a_single_row(without: &str) -> (Scene, Bridge, Database) {
    let scene = Scene::with_shards(1, "").await;
    let mut worker = scene.setup.run();
    worker.logged(READY).await;
    // With the claim of the second the database knows that the register has the first.
    one_by_one(&scene, 2).await;
    worker.signal("STOP");
    worker.stopped().await;
    enqueue(&scene.database.connect().await, "kafka", 1, 1).await;
    scene.database.end_connections().await;
    let replica = scene.database.copy().await;
    worker.signal("CONT");
    all_done(&scene.database).await;
    worker.signal("KILL");
    worker.ended().await;
    scene.database.fail_over_to(&replica).await;
    scene.let_the_leases_pass().await;
    let heir = scene.setup.clone().env("TRESTLE_WITHOUT", without).run();
    (scene, heir, replica)
}

#[tokio::test]
async fn a_database_that_has_lost_a_single_row_finds_it_in_the_topic() {
    let (scene, _heir, _lost) = loses_a_single_row("").await;
    scene.is_exact(3).await;
    assert_eq!(scene.recovered().await.values().sum::<i64>(), 1);
    one_by_one(&scene, 2).await;
    scene.is_exact(5).await;
}

#[tokio::test]
async fn without_the_tail_a_database_that_has_lost_a_single_row_sends_it_again() {
    let (scene, _heir, _lost) = loses_a_single_row("tail").await;
    all_done(&scene.database).await;
    assert_eq!(scene.topic.consume_committed().await.len(), 4);
}

/// Who writes to the topic besides may take its time.
#[tokio::test]
async fn a_transaction_that_somebody_else_has_open_keeps_no_shard_from_being_taken_up() {
    let scene = Scene::with_shards(1, "").await;
    let mut worker = scene.setup.run();
    one_by_one(&scene, 2).await;
    worker.signal("TERM");
    assert!(worker.ended().await.success());
    let _open = scene.topic.produce_openly(&[("a", "{}"), ("b", "{}"), ("c", "{}")]).await;
    let heir = scene.setup.run();
    heir.logged(READY).await;
}

/// Nothing of it is missed: it is another topic, to be used from its beginning.
#[tokio::test]
async fn a_topic_that_was_made_anew_halts_no_shard_without_a_batch_under_way() {
    let mut scene = Scene::with_shards(1, "").await;
    let mut worker = scene.setup.run();
    one_by_one(&scene, 3).await;
    worker.signal("TERM");
    assert!(worker.ended().await.success());
    scene.topic.make_anew(3).await;
    let heir = scene.setup.run();
    heir.logged(READY).await;
    one_by_one(&scene, 2).await;
    assert_eq!(scene.topic.consume_committed().await.len(), 2);
}
