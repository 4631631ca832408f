//! A broker and a database that are killed and started again, in the middle of everything.

use super::company::parts;
use super::rounds;
use super::scene::Scene;
use crate::rows::{all_done, enqueue, wait_for};
use crate::support::{Database, OwnKafka, OwnPostgres};

const KILLS_IN_A_SCENE: usize = 20;

/// Many rows come in, and when some of them are delivered, but not all, `kill` kills and starts again.
async fn in_the_middle(scene: &Scene, kills: usize, kill: impl Fn()) {
    let _workers = [scene.setup.run(), scene.setup.run()];
    for kill_number in 0..kills {
        enqueue(&scene.database.connect().await, "kafka", 40, 2_000).await;
        let some = format!(
            "SELECT count(*) > {} FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'",
            kill_number * 2_000 + 300
        );
        wait_for(&scene.database, &some).await;
        kill();
        all_done(&scene.database).await;
    }
    scene.is_exact(kills * 2_000).await;
}

#[tokio::test]
async fn a_broker_that_is_killed_and_started_again_costs_neither_a_row_nor_a_duplicate() {
    let kafka = OwnKafka::start().await;
    for kills in parts(rounds(), KILLS_IN_A_SCENE) {
        let scene = Scene::on(Database::new().await, &kafka.address()).await;
        in_the_middle(&scene, kills, || kafka.kill_and_start_again()).await;
    }
}

#[tokio::test]
async fn a_database_that_is_killed_and_started_again_costs_neither_a_row_nor_a_duplicate() {
    let postgres = OwnPostgres::start().await;
    let brokers = std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set");
    for kills in parts(3 * rounds(), KILLS_IN_A_SCENE) {
        let scene = Scene::on(Database::on(&postgres.config()).await, &brokers).await;
        in_the_middle(&scene, kills, || postgres.kill_and_start_again()).await;
    }
}
