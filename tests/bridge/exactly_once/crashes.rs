//! A worker that dies, or stands still, at each step of a batch's way.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Instant;

use super::company::{AT_ONCE, Company, a_few_at_a_time, parts, shared_by};
use super::rounds;
use super::scene::Scene;
use crate::process::Bridge;
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

/// The crash points of docs/exactly-once.md, and the places where a worker dies at each.
const POINTS: [(&str, &[&str]); 8] = [
    ("C1", &["eos_before_init", "eos_after_init"]),
    ("C2", &["claimed", "handed_over"]),
    ("C3", &["eos_sending"]),
    ("C4", &["eos_sent", "eos_before_commit"]),
    ("C5", &["eos_committing"]),
    ("C6", &["eos_committed"]),
    ("C7", &["before_completion", "completing"]),
    ("C8", &["after_completion"]),
];
/// So many kills before it is looked whether everything is exact.
const KILLS_IN_A_SCENE: usize = 24;

/// In one round alone every place has its turn; in each of many, one place of every point.
fn kills() -> Vec<(&'static str, &'static str)> {
    let all =
        |(point, places): (_, &'static [&str])| places.iter().map(move |place| (point, *place));
    if rounds() == 1 {
        return POINTS.into_iter().flat_map(all).collect();
    }
    let one = |round: usize| POINTS.map(|(point, places)| (point, places[round % places.len()]));
    (0..rounds()).flat_map(one).collect()
}

/// One after the other, beside one that lives on.
async fn die_at(places: &[(&str, &str)]) {
    let company = Company::new().await;
    for (point, place) in places {
        let doomed = company.scene.setup.clone().env("TRESTLE_FAILPOINT", place);
        let mut dead = company.receive(&doomed, Bridge::has_ended).await;
        assert_eq!(dead.ended().await.signal(), Some(9), "{point} {place}");
        company.bury(dead).await;
    }
    company.is_exact().await;
    if places.iter().any(|(_, place)| *place == "eos_committed") {
        let recovered = company.scene.recovered().await;
        assert!(recovered.contains_key("RECOVERED_FROM_REGISTER"), "{recovered:?}");
    }
}

#[test]
fn a_worker_killed_at_any_step_costs_neither_a_row_nor_a_duplicate() {
    let began = Instant::now();
    let kills = kills();
    let in_a_scene = kills.len().div_ceil(AT_ONCE).min(KILLS_IN_A_SCENE);
    a_few_at_a_time(kills.chunks(in_a_scene), die_at);
    eprintln!("{} workers were killed in {:?}", kills.len(), began.elapsed());
}

/// Two workers take turns: one stands still past its lease, and wakes up when the other has its shards.
async fn take_turns(turns: usize) {
    let scene = Scene::new().await;
    let client = scene.database.connect().await;
    let workers = [scene.setup.run(), scene.setup.run()];
    for turn in 0..turns {
        shared_by(&scene, 2).await;
        enqueue(&client, "kafka", 50, 300).await;
        let sleeper = &workers[turn % 2];
        wait_for(&scene.database, "SELECT count(*) < 250 FROM outbox.payment_outbox_pending").await;
        sleeper.signal("STOP");
        scene.let_the_leases_pass().await;
        all_done(&scene.database).await;
        enqueue(&client, "kafka", 50, 100).await;
        sleeper.signal("CONT");
    }
    scene.is_exact(scene.enqueued().await).await;
}

#[test]
fn workers_that_are_stopped_past_their_lease_and_woken_in_turn_are_fenced_off() {
    const TURNS_IN_A_SCENE: usize = 25;
    let began = Instant::now();
    let turns = 2.max(rounds());
    a_few_at_a_time(parts(turns, TURNS_IN_A_SCENE), take_turns);
    eprintln!("{turns} workers were stopped and woken in {:?}", began.elapsed());
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
