//! Requests that arrive late, and workers that wake up late.

use std::time::Instant;

use super::company::{Company, a_few_at_a_time, parts};
use super::rounds;
use super::scene::Scene;
use crate::process::Bridge;
use crate::rows::{all_done, enqueue, wait_for};
use crate::support::{Postman, When};

const READY: &str = "the shard is ready";

/// One shard, so that the postman knows whose requests it reads.
async fn one_shard() -> (Scene, Postman) {
    let scene = Scene::with_shards(1, "").await;
    let postman = Postman::new(scene.topic.name());
    (scene, postman)
}

async fn late_commits(commits: usize, when: When, without: &str) -> (Scene, Postman, Bridge) {
    let (scene, postman) = one_shard().await;
    let setup = scene.setup.clone().env("KAFKA_BROKERS", postman.address());
    let worker = setup.env("TRESTLE_WITHOUT", without).run();
    worker.logged(READY).await;
    postman.deliver_commits_late(commits, when);
    let client = scene.database.connect().await;
    // One batch after the other, so that each late commit finds a transaction to end.
    while postman.delivered_late() < commits {
        enqueue(&client, "kafka", 5, 50).await;
        wait_for(
            &scene.database,
            "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending) \
            OR EXISTS (SELECT FROM outbox.payment_outbox_shards WHERE halted_at IS NOT NULL)",
        )
        .await;
    }
    (scene, postman, worker)
}

#[test]
fn a_commit_that_arrives_late_ends_half_of_the_next_transaction_and_no_row_twice() {
    const COMMITS_IN_A_SCENE: usize = 50;
    let (began, commits) = (Instant::now(), 5.max(rounds()));
    let some = |commits| async move {
        let (scene, _postman, _worker) = late_commits(commits, When::AmongRows, "").await;
        scene.is_exact(scene.enqueued().await).await;
        let recovered = scene.recovered().await;
        assert!(recovered.contains_key("RECOVERED_FROM_TAIL"), "{recovered:?}");
    };
    a_few_at_a_time(parts(commits, COMMITS_IN_A_SCENE), some);
    eprintln!("{commits} commits were delivered late in {:?}", began.elapsed());
}

#[tokio::test]
async fn without_the_tail_a_late_commit_makes_duplicates() {
    let (scene, _postman, _worker) = late_commits(3, When::AmongRows, "tail").await;
    let records = scene.topic.consume_committed().await;
    let rows = scene.enqueued().await;
    assert!(records.len() > rows, "{} records of {rows} rows", records.len());
}

#[tokio::test]
async fn with_the_register_first_a_late_commit_says_that_rows_are_there_which_are_not() {
    let (scene, _postman, worker) = late_commits(1, When::BeforeRows, "register_order").await;
    worker.logged("but the topics have 0 of them").await;
    wait_for(
        &scene.database,
        "SELECT count(*) = 1 FROM outbox.payment_outbox_shards WHERE halted_at IS NOT NULL",
    )
    .await;
}

/// Owners whose records are kept back die, and what they sent arrives while others deliver their rows.
async fn late_records(owners: usize) {
    let company = Company::new().await;
    let postman = Postman::new(company.scene.topic.name());
    postman.keep_records();
    let by_postman = company.scene.setup.clone().env("KAFKA_BROKERS", postman.address());
    for _ in 0..owners {
        let owner = company.receive(&by_postman, |_| postman.kept() > 0).await;
        company.bury(owner).await;
        // Into the transactions in which others deliver.
        enqueue(&company.scene.database.connect().await, "kafka", 20, 200).await;
        assert!(postman.let_go() > 0);
    }
    company.is_exact().await;
}

#[test]
fn records_of_a_dead_owner_that_arrive_late_are_refused() {
    const OWNERS_IN_A_SCENE: usize = 25;
    let (began, owners) = (Instant::now(), 2.max(rounds()));
    a_few_at_a_time(parts(owners, OWNERS_IN_A_SCENE), late_records);
    eprintln!("records of {owners} dead owners were delivered late in {:?}", began.elapsed());
}

/// A worker that stands still at this place while another takes its shards, and then goes on.
async fn woken_late(place: &str, without: &str) -> Scene {
    let scene = Scene::new().await;
    let client = scene.database.connect().await;
    enqueue(&client, "kafka", 30, 300).await;
    let setup = scene.setup.clone().env("TRESTLE_WITHOUT", without);
    let sleeper = setup.clone().env("TRESTLE_FAILPOINT", &format!("stop:{place}")).run();
    sleeper.stopped().await;
    scene.let_the_leases_pass().await;
    let _heir = setup.run();
    all_done(&scene.database).await;
    let before = sleeper.log().matches(READY).count();
    sleeper.signal("CONT");
    if without == "fence" {
        // Its outcomes are refused when its records are there: until then its end would take them back.
        sleeper.logged("CONCURRENCY_EVENT").await;
    }
    // It learns that its shards are gone, and takes its share of them again.
    sleeper.logged_times(READY, before + 1).await;
    enqueue(&client, "kafka", 30, 300).await;
    all_done(&scene.database).await;
    scene
}

#[tokio::test]
async fn an_owner_that_wakes_up_late_is_fenced_off_wherever_it_stood() {
    for place in ["eos_before_begin", "eos_sending", "eos_before_commit"] {
        woken_late(place, "").await.is_exact(600).await;
    }
}

#[tokio::test]
async fn an_owner_that_fences_its_successor_off_too_late_costs_it_no_row() {
    woken_late("eos_before_init", "").await.is_exact(600).await;
}

#[tokio::test]
async fn without_the_fence_an_owner_that_wakes_up_late_makes_duplicates() {
    let scene = woken_late("eos_before_begin", "fence").await;
    let records = scene.topic.consume_committed().await;
    assert!(records.len() > 600, "{} records of 600 rows", records.len());
}
