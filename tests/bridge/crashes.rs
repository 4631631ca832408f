//! A worker that dies at each step of a row's way.

use std::os::unix::process::ExitStatusExt as _;

use crate::process::Setup;
use crate::rows::{all_done, complete_and_in_order, count, each_once, enqueue};
use crate::secured::{free_address, metrics};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, Topic};

/// Whether rows are sent again after a worker has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    Never,
    Perhaps,
    Surely,
}

impl Again {
    pub(crate) fn allows(self, duplicates: usize) -> bool {
        match self {
            Self::Never => duplicates == 0,
            Self::Perhaps => true,
            Self::Surely => duplicates > 0,
        }
    }
}

/// Where it dies. From where the receiver certainly has a row to where the ledger has it, that is sent again.
pub(crate) const STEPS: [(&str, Again); 7] = [
    ("claimed", Again::Never),
    ("validated", Again::Never),
    ("handed_over", Again::Perhaps),
    ("sent", Again::Surely),
    ("acknowledged", Again::Surely),
    ("before_completion", Again::Surely),
    ("after_completion", Again::Perhaps),
];
const LEASE: &str = "[relay]\nlease_seconds = 11\n";
const ROWS: usize = 300;

#[tokio::test]
async fn a_worker_killed_at_any_step_loses_nothing_and_breaks_no_order() {
    for (step, again) in STEPS {
        let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
        database.control_clock().await;
        let setup = Setup::kafka(&database, &topic).await.and(LEASE);
        enqueue(&database.connect().await, "kafka", 30, 300).await;
        let status = setup.doomed(step).ended().await;
        assert_eq!(status.signal(), Some(9), "{step}");
        database.let_the_leases_pass().await;
        let _heir = setup.run();
        all_done(&database).await;
        assert!(count(&database, "ZOMBIE_REQUEUE").await > 0, "{step}");
        let duplicates = complete_and_in_order(&database, &topic, ROWS).await;
        assert!(again.allows(duplicates), "{step}: {duplicates} duplicates, but {again:?}");
    }
}

/// The broker has records of which the worker has not heard.
#[tokio::test]
async fn a_worker_killed_before_the_broker_has_answered_sends_again_and_loses_nothing() {
    let (database, topic, proxy) =
        (Database::new().await, Topic::with_partitions(3).await, Proxy::to_kafka());
    database.control_clock().await;
    let setup = Setup::kafka(&database, &topic).await;
    // Longer than it takes to see the records there.
    let setup = setup.instead("timeout_seconds = 5", "timeout_seconds = 30");
    let worker = setup.clone().env("KAFKA_BROKERS", proxy.address()).run();
    let client = database.connect().await;
    enqueue(&client, "kafka", 30, 300).await;
    all_done(&database).await;
    proxy.set(Mode::LoseAnswers);
    enqueue(&client, "kafka", 30, 30).await;
    topic.consume(ROWS + 1).await;
    worker.signal("KILL");
    assert_eq!(count(&database, "DISPATCHED").await, 300);
    database.let_the_leases_pass().await;
    let _heir = setup.run();
    all_done(&database).await;
    assert!(complete_and_in_order(&database, &topic, ROWS + 30).await > 0);
}

/// A topic that is missing makes it give rows back.
#[tokio::test]
async fn a_worker_killed_while_giving_back_loses_nothing() {
    let (database, mut topic) = (Database::new().await, Topic::unmade());
    database.control_clock().await;
    let setup = Setup::kafka(&database, &topic).await.and(LEASE);
    enqueue(&database.connect().await, "kafka", 5, 20).await;
    assert_eq!(setup.doomed("releasing").ended().await.signal(), Some(9));
    topic.make(2).await;
    let heir = setup.run();
    heir.logged("ready").await;
    database.let_the_leases_pass().await;
    heir.logged_times("repaired an expired lease", 20).await;
    all_done(&database).await;
    each_once(&topic, 20).await;
    assert_eq!(count(&database, "DISPATCHED").await, 20);
}

/// One dies with leases, the next when it has repaired them.
#[tokio::test]
async fn a_worker_killed_while_repairing_loses_nothing() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(2).await);
    database.control_clock().await;
    let setup = Setup::kafka(&database, &topic).await.and(LEASE);
    enqueue(&database.connect().await, "kafka", 5, 20).await;
    assert_eq!(setup.doomed("claimed").ended().await.signal(), Some(9));
    let mut repairer = setup.doomed("repaired");
    repairer.logged("ready").await;
    database.let_the_leases_pass().await;
    assert_eq!(repairer.ended().await.signal(), Some(9));
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 20, "all of them were repaired");
    let _heir = setup.run();
    all_done(&database).await;
    each_once(&topic, 20).await;
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 20, "and none of them again");
    assert_eq!(count(&database, "DISPATCHED").await, 20);
}

/// Its lease passes by the clock of the database and by its own: it stands still while its heir delivers.
#[tokio::test]
async fn a_worker_stopped_past_its_lease_and_woken_is_refused_and_breaks_no_order() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    let setup = Setup::kafka(&database, &topic).await.and(LEASE);
    let client = database.connect().await;
    enqueue(&client, "kafka", 50, 5_000).await;
    let admin = free_address().await;
    let sleeper = setup.clone().env("TRESTLE_FAILPOINT", "stop:before_completion");
    let sleeper = sleeper.env("TRESTLE_ADMIN__LISTEN", &admin).run();
    sleeper.stopped().await;
    let _heir = setup.run();
    all_done(&database).await;
    assert!(count(&database, "ZOMBIE_REQUEUE").await > 0, "it had leases");
    sleeper.signal("CONT");
    sleeper.logged("CONCURRENCY_EVENT: the ledger has the outcome of this row already").await;
    assert!(refusals(&admin, "P7001").await > 0.0);
    enqueue(&client, "kafka", 50, 100).await;
    all_done(&database).await;
    complete_and_in_order(&database, &topic, 5_100).await;
}

/// It wakes up when the ledger has everything, delivers what comes then, and ends when it has told what it had under way.
/// Returns what it logged.
pub(crate) async fn sleeps_past_its_lease(
    database: &Database,
    setup: &Setup,
    step: &str,
    rail: &str,
) -> String {
    let mut sleeper = setup.doomed(&format!("stop:{step}"));
    sleeper.stopped().await;
    let heir = setup.run();
    all_done(database).await;
    assert!(count(database, "ZOMBIE_REQUEUE").await > 0, "{step}: it had leases");
    drop(heir);
    sleeper.signal("CONT");
    enqueue(&database.connect().await, rail, 30, 30).await;
    all_done(database).await;
    sleeper.signal("TERM");
    assert!(sleeper.ended().await.success(), "{step}: {}", sleeper.log());
    sleeper.log()
}

/// What it has sent it is told to be too late with; what it has not, it does not send any more.
pub(crate) fn was_stopped_in_time(step: &str, again: Again, duplicates: usize, log: &str) {
    assert!(again.allows(duplicates), "{step}: {duplicates} duplicates, but {again:?}\n{log}");
    let refused = log.contains("CONCURRENCY_EVENT: the ledger has the outcome of this row already");
    assert!(refused || duplicates == 0, "{step}: {duplicates} duplicates, none refused\n{log}");
}

async fn sleeps_at(step: &str, again: Again) {
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    let setup = Setup::kafka(&database, &topic).await.and(LEASE);
    enqueue(&database.connect().await, "kafka", 30, 300).await;
    let log = sleeps_past_its_lease(&database, &setup, step, "kafka").await;
    let duplicates = complete_and_in_order(&database, &topic, ROWS + 30).await;
    was_stopped_in_time(step, again, duplicates, &log);
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_as_it_has_claimed_sends_nothing_any_more() {
    sleeps_at("claimed", Again::Never).await;
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_before_it_hands_over_sends_nothing_any_more() {
    sleeps_at("validated", Again::Never).await;
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_as_it_has_handed_over_is_told_that_it_is_too_late_if_it_has_sent()
 {
    sleeps_at("handed_over", Again::Perhaps).await;
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_before_it_hears_what_became_of_a_row_is_told_that_it_is_too_late()
 {
    sleeps_at("sent", Again::Surely).await;
}

/// Somebody has repaired its leases, and nobody has delivered its rows again.
#[tokio::test]
async fn a_worker_that_wakes_up_before_its_heir_has_lost_its_leases_and_sends_again() {
    const REPAIR: &str = "SELECT count(*) FROM outbox.repair_expired_leases(1000, 'somebody')";
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "kafka", 30, 300).await;
    let (setup, admin) = (Setup::kafka(&database, &topic).await.and(LEASE), free_address().await);
    let setup = setup.env("TRESTLE_FAILPOINT", "stop:before_completion");
    let sleeper = setup.env("TRESTLE_ADMIN__LISTEN", &admin).run();
    sleeper.stopped().await;
    database.let_the_leases_pass().await;
    let repaired: i64 = client.query_one(REPAIR, &[]).await.unwrap().get(0);
    assert!(repaired > 0, "it had leases");
    sleeper.signal("CONT");
    sleeper.logged("CONCURRENCY_EVENT: the lease of this row is lost").await;
    assert!(refusals(&admin, "P7002").await > 0.0);
    all_done(&database).await;
    let duplicates = complete_and_in_order(&database, &topic, ROWS).await;
    assert!(duplicates > 0, "what it had sent without being able to write it down");
}

/// How many outcomes were refused with this code, as its metrics have it.
async fn refusals(admin: &str, code: &str) -> f64 {
    let metrics = metrics(admin).await;
    let series = format!("concurrency_events_total{{code=\"{code}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&series));
    value.map_or(0.0, |value| value.parse().unwrap())
}
