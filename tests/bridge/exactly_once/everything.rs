//! Everything at once: four workers that die, stand still, stop and start, behind a network that loses
//! connections and answers to the broker and to the database.

use std::time::{Duration, Instant, SystemTime};

use super::rounds;
use super::scene::Scene;
use crate::process::Bridge;
use crate::rows::{all_done, enqueue, wait_for};
use crate::support::proxy::{Mode, Proxy};

const WORKERS: usize = 4;
/// So much happens before it is looked whether everything is exact.
const ACTS: usize = 16;
/// What a worker says when it has started.
const UP: &str = "\"ready\"";
/// How long a worker stands still, or answers get lost.
const A_MOMENT: Duration = Duration::from_millis(300);

/// Chooses by a seed, so that what has failed can be played again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // Knuth's multiplier; the lower bits are worth little.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }
}

struct Storm {
    scene: Scene,
    kafka: Proxy,
    postgres: Proxy,
    workers: Vec<Bridge>,
    dice: Dice,
}

impl Storm {
    async fn new(seed: u64) -> Self {
        let mut scene = Scene::new().await;
        let (kafka, postgres) = (Proxy::to_kafka(), Proxy::to_postgres());
        let url = scene.database.url_as("symphony_executor").await;
        let setup = scene.setup.clone().env("KAFKA_BROKERS", kafka.address());
        scene.setup = setup.env("DATABASE_URL", &postgres.instead_in(&url));
        let workers: Vec<Bridge> = (0..WORKERS).map(|_| scene.setup.run()).collect();
        for worker in &workers {
            worker.logged(UP).await;
        }
        Self { scene, kafka, postgres, workers, dice: Dice(seed) }
    }

    /// Another in its place. It is up before anything else happens: without a database it would not start.
    async fn replace(&mut self, worker: usize) {
        // Dropped, it is killed.
        self.workers[worker] = self.scene.setup.run();
        self.workers[worker].logged(UP).await;
    }

    async fn act(&mut self) {
        let worker = self.dice.roll(WORKERS);
        match self.dice.roll(10) {
            0..=2 => {
                self.replace(worker).await;
                self.scene.let_the_leases_pass().await;
            }
            3 | 4 => {
                self.workers[worker].signal("STOP");
                self.scene.let_the_leases_pass().await;
                tokio::time::sleep(A_MOMENT).await;
                self.workers[worker].signal("CONT");
            }
            5 => {
                self.workers[worker].signal("TERM");
                assert!(self.workers[worker].ended().await.success());
                self.replace(worker).await;
            }
            6 => self.kafka.cut(),
            7 => self.postgres.cut(),
            8 => lose_answers(&self.kafka).await,
            _ => lose_answers(&self.postgres).await,
        }
    }
}

/// What was asked for may have happened, and nobody hears of it.
async fn lose_answers(proxy: &Proxy) {
    proxy.set(Mode::LoseAnswers);
    tokio::time::sleep(A_MOMENT).await;
    proxy.cut();
    proxy.set(Mode::Pass);
}

async fn storm(seed: u64) {
    eprintln!("everything at once, seed {seed}");
    let mut storm = Storm::new(seed).await;
    let client = storm.scene.database.connect().await;
    for _ in 0..ACTS {
        enqueue(&client, "kafka", 40, 200).await;
        storm.act().await;
        // Some of it gets through before the next.
        wait_for(&storm.scene.database, "SELECT count(*) < 600 FROM outbox.payment_outbox_pending")
            .await;
    }
    all_done(&storm.scene.database).await;
    storm.scene.is_exact(ACTS * 200).await;
}

#[tokio::test]
async fn everything_at_once_with_four_workers_costs_neither_a_row_nor_a_duplicate() {
    let began = Instant::now();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let seed = std::env::var("EXACTLY_ONCE_SEED").map(|seed| seed.parse().expect("a number"));
    let seed = seed.unwrap_or(now.as_secs());
    for round in 0..rounds() {
        storm(seed + u64::try_from(round).unwrap()).await;
    }
    eprintln!("{} acts of everything at once in {:?}", rounds() * ACTS, began.elapsed());
}
