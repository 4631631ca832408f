//! What exactly once costs, against the idempotent rail in the same run.

use std::time::Duration;

use crate::bridge::Bridge;
use crate::database::Database;
use crate::drain::Drained;
use crate::latency::{Latencies, measure, percentile};
use crate::report::{Bound, Report};
use crate::throughput::{ROWS, WARM_UPS, drained};
use crate::topic;

const ROUNDS: usize = 2;
/// Each with a drain of either kind.
const WARM_UP_ROUNDS: usize = WARM_UPS / 2;
const RATE: usize = 200;
const WARM_UP_RATE: usize = 1_000;
const POLICY: &str = "SELECT outbox.set_rail_policies('{\"kafka\": {\"delivery\": \"exactly_once\"}}', 'bench', 'bench')";

/// A database and a topic, and the settings of a rail that delivers exactly once between them.
pub(crate) async fn scene(name: &str) -> (Database, String, String) {
    let (database, topic) = (Database::new(name).await, topic::make("exactly-once").await);
    database.run(POLICY).await;
    let settings = format!(
        "delivery = \"exactly_once\"\ntransactional_id_prefix = \"{topic}\"\nregister_topic = \"{topic}.register\"\n"
    );
    (database, topic, settings)
}

pub(crate) async fn drain(report: &mut Report) {
    let (mut idempotent, mut exactly_once) = (Drained::default(), Drained::default());
    let (mut idempotent_cpu, mut exactly_once_cpu) = (Duration::ZERO, Duration::ZERO);
    for round in 0..WARM_UP_ROUNDS + ROUNDS {
        let database = Database::new(&format!("idempotent{round}")).await;
        let plain = drained(database, &topic::make("idempotent").await, "").await;
        let (database, topic, settings) = scene(&format!("exactly_once{round}")).await;
        let so = drained(database, &topic, &settings).await;
        if round >= WARM_UP_ROUNDS {
            idempotent.add(plain.drained);
            idempotent_cpu += plain.cpu;
            exactly_once.add(so.drained);
            exactly_once_cpu += so.cpu;
        }
    }
    let (idempotent, exactly_once) = (idempotent.per_second(), exactly_once.per_second());
    report.ratio(
        "drain of 512-byte rows, exactly once against idempotent",
        format!("idempotent {idempotent:.0} rows/s, exactly once {exactly_once:.0} rows/s"),
        exactly_once / idempotent,
        Bound::AtLeast(0.7),
    );
    let per_100k = |cpu: Duration| cpu.as_secs_f64() * 100_000.0 / (ROWS * ROUNDS) as f64;
    let (plain, so) = (per_100k(idempotent_cpu), per_100k(exactly_once_cpu));
    report.figure(
        "processor time of the bridge for 100,000 rows",
        format!("idempotent {plain:.1} s, exactly once {so:.1} s"),
    );
}

pub(crate) async fn latency(report: &mut Report) {
    // Not counted: as many transactions as it takes until the broker has compiled their path.
    delay(scene("warm_up").await, WARM_UP_RATE).await;
    let (mut idempotent, mut exactly_once) = (Latencies::default(), Latencies::default());
    for round in 0..ROUNDS {
        let database = Database::new(&format!("idempotent_delay{round}")).await;
        let plain = (database, topic::make("idempotent").await, String::new());
        idempotent.add(delay(plain, RATE).await);
        let so = scene(&format!("exactly_once_delay{round}")).await;
        exactly_once.add(delay(so, RATE).await);
    }
    // Both or neither: else the machine would be compared.
    let calm = idempotent.is_calm() && exactly_once.is_calm();
    let p50 = |latencies: &Latencies| percentile(latencies.counted(calm), 50);
    report.ratio(
        &format!("commit to consumer at {RATE} rows/s, p50 in ms that exactly once adds"),
        format!(
            "idempotent {} (p99 of all {:.1}), exactly once {} (p99 of all {:.1})",
            idempotent.told(50, calm),
            percentile(&idempotent.all, 99),
            exactly_once.told(50, calm),
            percentile(&exactly_once.all, 99)
        ),
        p50(&exactly_once) - p50(&idempotent),
        Bound::AtMost(10.0),
    );
}

/// From commit to consumer, with a bridge of its own.
async fn delay((database, topic, settings): (Database, String, String), rate: usize) -> Latencies {
    let bridge = Bridge::start_with("run", &database.url(), &topic, &settings);
    let latencies = measure(&database, &topic, rate).await;
    drop(bridge);
    database.remove().await;
    latencies
}
