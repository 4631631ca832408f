//! What a bridge shows when it is woken, and when it takes over from one that died.

use std::time::Duration;

use crate::probes::{Probes, Scrape};
use crate::process::Setup;
use crate::rows::{all_done, count, enqueue, wait_for};
use crate::sleeping::ASLEEP;
use crate::support::{Database, Topic};

/// So long that nothing but a notification wakes the bridge.
const NO_POLL: &str = "[relay]\npoll_ms = 3600000\n";
const LISTENS: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() \
    AND query = 'LISTEN outbox_pending' AND state = 'idle')";
/// A claim repairs what nobody has for three seconds, and cannot count it: here it leaves that to the housekeeping.
const CLAIMS_REPAIR_NOTHING: &str = "CREATE OR REPLACE FUNCTION outbox.repair_when_expired(p_worker_id text) \
    RETURNS void LANGUAGE sql AS ''";
const REPAIR: &str = "ON FUNCTION outbox.repair_expired_leases(integer, text)";

fn shows(series: &str, value: f64) -> impl Fn(&Scrape) -> bool {
    move |scrape| scrape.value(series) == Some(value)
}

#[tokio::test]
async fn each_enqueue_that_wakes_a_sleeping_bridge_is_counted() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let (setup, probes) = Probes::of(Setup::kafka(&database, &topic).await.and(NO_POLL));
    let _bridge = setup.run();
    wait_for(&database, LISTENS).await;
    let client = database.connect().await;
    for woken in [1.0, 2.0] {
        wait_for(&database, ASLEEP).await;
        enqueue(&client, "kafka", 1, 1).await;
        all_done(&database).await;
        probes.scrape(shows("notify_wakeups_total", woken)).await;
    }
}

#[tokio::test]
async fn the_rows_of_a_worker_that_died_are_stuck_until_they_are_repaired_and_counted_then() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    database.control_clock().await;
    let client = database.connect().await;
    client.batch_execute(CLAIMS_REPAIR_NOTHING).await.unwrap();
    let (setup, probes) = Probes::of(Setup::kafka(&database, &topic).await);
    enqueue(&client, "kafka", 3, 6).await;
    setup.doomed("claimed").ended().await;
    database.advance(Duration::from_secs(120)).await;
    client.batch_execute(&format!("REVOKE EXECUTE {REPAIR} FROM symphony_executor")).await.unwrap();
    let _heir = setup.run();
    // Three lanes with two rows each.
    let stuck = probes.scrape(shows("stuck_dispatching_count", 3.0)).await;
    assert_eq!(stuck.value("reaper_requeues_total"), Some(0.0));
    client.batch_execute(&format!("GRANT EXECUTE {REPAIR} TO symphony_executor")).await.unwrap();
    all_done(&database).await;
    let repaired = probes.scrape(shows("stuck_dispatching_count", 0.0)).await;
    let zombies = count(&database, "ZOMBIE_REQUEUE").await;
    assert_eq!(zombies, 6);
    for series in ["reaper_requeues_total", r#"attempts_total{state="ZOMBIE_REQUEUE"}"#] {
        assert_eq!(repaired.value(series), Some(zombies as f64), "{series}");
    }
}
