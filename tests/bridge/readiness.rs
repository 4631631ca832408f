//! A bridge that makes no progress says so, and why; the service manager hears of its life.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use axum::http::StatusCode;
use tempfile::TempDir;

use crate::probes::Probes;
use crate::process::Setup;
use crate::rows::{all_done, enqueue};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, Topic};
use crate::web::Bank;

const WHY: &str = "and none was finished: rail bank: 1 of its destinations cannot be reached";

#[tokio::test]
async fn work_without_progress_fails_readiness_and_names_the_rail_until_it_is_back() {
    let (database, bank) =
        (Database::new().await, Bank::open(StatusCode::SERVICE_UNAVAILABLE).await);
    let setup =
        bank.setup(&database).await.and("timeout_seconds = 5\n[relay]\nstalled_seconds = 10\n");
    let (setup, probes) = Probes::of(setup);
    let _bridge = setup.run();
    probes.say(true).await;
    enqueue(&database.connect().await, "bank", 3, 3).await;
    let said = probes.answer(|answer| answer.starts_with("HTTP/1.1 503 ")).await;
    assert!(said.contains("work has been waiting for 1") && said.contains(WHY), "{said}");
    probes.scrape(|scrape| scrape.value("relay_stalled") == Some(1.0)).await;
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    probes.say(true).await;
    probes.scrape(|scrape| scrape.value("relay_stalled") == Some(0.0)).await;
}

/// What the service manager would hear.
struct Manager {
    socket: UnixDatagram,
    folder: TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        Self { socket, folder }
    }

    /// A bridge whose watchdog bites after two seconds, so that it pings twice a second.
    fn runs(&self, setup: Setup) -> Setup {
        let socket = self.folder.path().join("notify");
        setup
            .env("NOTIFY_SOCKET", socket.to_str().expect("a path in UTF-8"))
            .env("WATCHDOG_USEC", "2000000")
    }

    /// What it is told next, or nothing for so long.
    fn hears(&self, patience: Duration) -> Option<String> {
        self.socket.set_read_timeout(Some(patience)).expect("a time-out");
        let mut told = [0; 100];
        let length = self.socket.recv(&mut told).ok()?;
        Some(String::from_utf8_lossy(&told[..length]).trim().to_owned())
    }

    fn hears_until(&self, wanted: &str) {
        for _ in 0..20 {
            let told = self.hears(Duration::from_secs(20));
            let told = told.unwrap_or_else(|| panic!("nothing came, {wanted} least of all"));
            if told == wanted {
                return;
            }
            assert_eq!(told, "WATCHDOG=1");
        }
        panic!("{wanted} did not come");
    }

    /// Waits until nothing has come for three of its pings' intervals and more.
    fn hears_nothing_any_more(&self) {
        let heard = (0..10).take_while(|_| self.hears(Duration::from_secs(2)).is_some()).count();
        assert!(heard < 10, "it pings although its loop hangs");
    }
}

/// The process is well and its timers run, but the loop hangs in a call: that starves the watchdog.
#[tokio::test(flavor = "multi_thread")]
async fn systemd_hears_that_it_is_ready_that_its_loop_goes_round_and_that_it_stops() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let (proxy, manager) = (Proxy::to_postgres(), Manager::new());
    let url = proxy.instead_in(&database.url_as("symphony_executor").await);
    let setup = manager.runs(Setup::kafka(&database, &topic).await.env("DATABASE_URL", &url));
    let mut bridge = setup.run();
    manager.hears_until("READY=1");
    for _ in 0..3 {
        manager.hears_until("WATCHDOG=1");
    }
    proxy.set(Mode::Hold);
    manager.hears_nothing_any_more();
    proxy.set(Mode::Pass);
    manager.hears_until("WATCHDOG=1");
    bridge.signal("TERM");
    manager.hears_until("STOPPING=1");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
}
