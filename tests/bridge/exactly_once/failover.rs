//! A database that fails over to a standby which had not heard of its last commits.

use super::company::parts;
use super::rounds;
use super::scene::Scene;
use crate::rows::{all_done, count, enqueue, wait_for};
use crate::support::{Database, OwnPostgres};

const FAILOVERS_IN_A_SCENE: usize = 20;

/// Two servers, of which one follows the other, and takes its place.
struct Pair {
    primary: OwnPostgres,
    standby: OwnPostgres,
}

impl Pair {
    async fn start() -> Self {
        let primary = OwnPostgres::start().await;
        let standby = primary.standby().await;
        Self { primary, standby }
    }

    /// A scene whose database is wherever it can be written to.
    async fn scene(&self) -> Scene {
        let brokers = std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set");
        let server = self.primary.config_or(&self.standby);
        Scene::on(Database::on(&server).await, &brokers).await
    }

    /// The other is the primary now, and follows nobody.
    async fn fail_over(&mut self) {
        self.primary.kill();
        self.standby.promote().await;
        std::mem::swap(&mut self.primary, &mut self.standby);
    }

    /// What was the primary comes back, as a standby.
    fn restore(&self) {
        self.standby.start_again_as_standby_of(&self.primary);
    }
}

async fn delivered(scene: &Scene, more_than: i64) {
    let delivered =
        "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'";
    wait_for(&scene.database, &format!("SELECT ({delivered}) > {more_than}")).await;
}

/// The standby hears of some claims and outcomes, and then of nothing more: rows that it has as pending are
/// delivered, and rows that it has never heard of. In the middle of those it becomes the primary.
async fn lose_commits(pair: &mut Pair, scene: &Scene) {
    let client = scene.database.connect().await;
    let before = count(&scene.database, "DISPATCHED").await;
    enqueue(&client, "kafka", 40, 2_000).await;
    delivered(scene, before + 300).await;
    pair.standby.cut_off().await;
    all_done(&scene.database).await;
    enqueue(&client, "kafka", 40, 2_000).await;
    delivered(scene, before + 2_300).await;
    pair.fail_over().await;
    let lost = before + 2_300 - count(&scene.database, "DISPATCHED").await;
    assert!(lost > 300, "the standby knows of too much: only {lost} outcomes are lost");
}

/// What it still knows of is exact, and what comes after it.
async fn goes_on(scene: &Scene, recovered: i64) -> i64 {
    enqueue(&scene.database.connect().await, "kafka", 40, 400).await;
    scene.is_exact_for_survivors().await;
    let now: i64 = scene.recovered().await.values().sum();
    assert!(now > recovered, "nothing was recovered");
    now
}

#[tokio::test]
async fn a_failover_that_loses_commits_costs_a_new_worker_neither_a_row_nor_a_duplicate() {
    let mut pair = Pair::start().await;
    for failovers in parts(rounds(), FAILOVERS_IN_A_SCENE) {
        let scene = pair.scene().await;
        let mut recovered = 0;
        for _ in 0..failovers {
            let worker = scene.setup.run();
            lose_commits(&mut pair, &scene).await;
            drop(worker);
            scene.let_the_leases_pass().await;
            let _heir = scene.setup.run();
            recovered = goes_on(&scene, recovered).await;
            pair.restore();
        }
    }
}

#[tokio::test]
async fn a_failover_that_loses_commits_costs_a_worker_that_lives_on_neither_a_row_nor_a_duplicate()
{
    let mut pair = Pair::start().await;
    for failovers in parts(rounds(), FAILOVERS_IN_A_SCENE) {
        let scene = pair.scene().await;
        let _worker = scene.setup.run();
        let mut recovered = 0;
        for _ in 0..failovers {
            lose_commits(&mut pair, &scene).await;
            recovered = goes_on(&scene, recovered).await;
            pair.restore();
        }
    }
}
