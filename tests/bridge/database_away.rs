//! A database that goes away in the middle, and comes back.

use std::time::{Duration, Instant};

use crate::probes::Probes;
use crate::process::{Bridge, PATIENCE, Setup};
use crate::rows::{all_done, complete_and_in_order, enqueue, wait_for};
use crate::sleeping::ASLEEP;
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, Topic};

/// Rows whose claim was lost on its way wait for their lease, which is short here.
const RELAY: &str = "[relay]\nlease_seconds = 11\n";
/// So long that nothing but a notification wakes the bridge.
const NO_POLL: &str = "poll_ms = 3600000\n";
const KILL: &str = "SELECT count(*) > 0 FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'trestle') AS killed";

struct Scene {
    database: Database,
    topic: Topic,
    proxy: Proxy,
    bridge: Bridge,
    probes: Probes,
}

impl Scene {
    /// A bridge that reaches its database by way of a proxy, and is ready.
    async fn new(poll: &str) -> Self {
        let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
        let proxy = Proxy::to_postgres();
        let url = database.url_as("symphony_executor").await;
        let (setup, probes) =
            Probes::of(Setup::kafka(&database, &topic).await.and(RELAY).and(poll));
        let setup = setup.env("DATABASE_URL", &proxy.instead_in(&url));
        let bridge = setup.env("TRESTLE_LOG", "debug").run();
        probes.say(true).await;
        Self { database, topic, proxy, bridge, probes }
    }

    async fn enqueue(&self, rows: i64) {
        enqueue(&self.database.connect().await, "kafka", 50, rows).await;
    }

    /// Waits until so many rows have an outcome, and more are to come.
    async fn in_the_middle(&self, done: i64) {
        let some = format!("SELECT count(*) > {done} FROM outbox.payment_outbox_attempts");
        wait_for(&self.database, &some).await;
    }

    /// Cuts all connections and accepts none until the bridge has tried a few times.
    async fn goes_away(&self) {
        self.proxy.set(Mode::TurnAway);
        self.proxy.cut();
        self.probes.say(false).await;
        self.enqueue(1_000).await;
        tries_less_and_less_often(&self.bridge).await;
        self.says_so_once();
        self.proxy.set(Mode::Pass);
        self.bridge.logged("claiming again").await;
    }

    /// However often it tries. The connection that broke and the one that is refused are two things.
    fn says_so_once(&self) {
        let log = self.bridge.log();
        let warnings: Vec<&str> =
            log.lines().filter(|line| line.contains("\"level\":\"WARN\"")).collect();
        for words in ["cannot claim", "housekeeping", "cannot listen"] {
            let told = warnings.iter().filter(|line| line.contains(words)).count();
            assert!(told <= 2, "{told} warnings of {words:?}:\n{log}");
        }
    }

    /// Everything arrives, and notifications alone bring more.
    async fn comes_back(&self, rows: usize) {
        self.probes.say(true).await;
        all_done(&self.database).await;
        for _ in 0..3 {
            wait_for(&self.database, ASLEEP).await;
            enqueue(&self.database.connect().await, "kafka", 1, 1).await;
            all_done(&self.database).await;
        }
        complete_and_in_order(&self.database, &self.topic, rows + 3).await;
    }
}

#[tokio::test]
async fn connections_that_are_killed_again_and_again_cost_no_row_and_no_order() {
    let scene = Scene::new(NO_POLL).await;
    for round in 0..6 {
        scene.enqueue(1_000).await;
        scene.in_the_middle(round * 1_000).await;
        wait_for(&scene.database, KILL).await;
    }
    scene.comes_back(6_000).await;
}

#[tokio::test]
async fn a_database_that_cuts_and_turns_away_is_tried_less_and_less_often_and_costs_no_row() {
    let scene = Scene::new(NO_POLL).await;
    scene.enqueue(1_000).await;
    scene.in_the_middle(0).await;
    scene.goes_away().await;
    scene.comes_back(2_000).await;
}

/// A bridge that sleeps asks for nothing, and notices all the same.
#[tokio::test]
async fn a_database_that_goes_away_while_the_bridge_sleeps_is_missed() {
    let scene = Scene::new(NO_POLL).await;
    wait_for(&scene.database, ASLEEP).await;
    scene.goes_away().await;
    scene.comes_back(1_000).await;
}

/// Repair is tried every second, and what works in between is no reason to say it again.
#[tokio::test]
async fn a_chore_that_the_database_refuses_is_told_once_while_the_others_work() {
    let scene = Scene::new(NO_POLL).await;
    let revoke = "REVOKE EXECUTE ON FUNCTION outbox.repair_expired_leases(integer, text) FROM symphony_executor";
    scene.database.connect().await.batch_execute(revoke).await.unwrap();
    scene.bridge.logged_times("housekeeping fails", 8).await;
    let log = scene.bridge.log();
    let warnings: Vec<&str> =
        log.lines().filter(|line| line.contains("\"level\":\"WARN\"")).collect();
    assert_eq!(warnings.len(), 1, "{log}");
    for words in ["housekeeping fails", "\"chore\":\"repair\"", "permission denied"] {
        assert!(warnings[0].contains(words), "{words}: {}", warnings[0]);
    }
}

/// Four pauses, each twice as long as the one before, from a tenth of a second.
async fn tries_less_and_less_often(bridge: &Bridge) {
    let tries = || bridge.log().matches("cannot claim").count();
    let (before, began) = (tries(), Instant::now());
    while tries() < before + 5 {
        assert!(began.elapsed() < PATIENCE, "it tries no more:\n{}", bridge.log());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(began.elapsed() > Duration::from_millis(1_400), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_database_that_falls_silent_and_speaks_again_costs_no_row_and_no_order() {
    let scene = Scene::new(NO_POLL).await;
    scene.enqueue(2_000).await;
    scene.in_the_middle(0).await;
    scene.proxy.set(Mode::Hold);
    scene.enqueue(1_000).await;
    scene.probes.say(false).await;
    scene.proxy.set(Mode::Pass);
    scene.comes_back(3_000).await;
}

/// As after a failover: whoever held the old connections is never heard of again. Until the one that
/// listens is found dead, polling finds the work. Few rows: those whose lease ran out twice meanwhile go
/// one at a time.
#[tokio::test]
async fn connections_that_fall_silent_for_good_are_replaced_and_cost_no_row_and_no_order() {
    let scene = Scene::new("").await;
    scene.enqueue(200).await;
    scene.in_the_middle(0).await;
    scene.proxy.strand();
    scene.enqueue(100).await;
    all_done(&scene.database).await;
    scene.probes.say(true).await;
    complete_and_in_order(&scene.database, &scene.topic, 300).await;
}
