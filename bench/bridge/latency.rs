//! From commit to consumer.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::bridge::Bridge;
use crate::database::Database;
use crate::machine::Machine;
use crate::report::{Bound, Report};
use crate::topic;

const SECONDS: usize = 30;
/// A broker that has just started compiles itself while it works: what it does in this time does not count.
const WARM_UP_SECONDS: usize = 20;
/// With fewer rows from calm moments, all of them count.
const ENOUGH: usize = 1_000;
const PRODUCERS: usize = 4;
const ENQUEUE: &str = "SELECT outbox_id FROM outbox.enqueue_payment_outbox($1, $2, 'payment', 'kafka', $3::text::jsonb)";

pub(crate) async fn at(report: &mut Report, rate: usize, p50_ms: f64, p99_ms: f64) {
    let database = Database::new(&format!("latency{rate}")).await;
    let topic = topic::make("latency").await;
    let _bridge = Bridge::start("run", &database.url(), &topic);
    let measured = measure(&database, &topic, rate).await;
    for (percent, bound) in [(50, p50_ms), (99, p99_ms)] {
        let case = format!("commit to consumer at {rate} rows/s, p{percent} in ms");
        tell(report, &case, &measured, percent, bound);
    }
}

/// From commit to consumer in milliseconds, sorted.
#[derive(Default)]
pub(crate) struct Latencies {
    pub(crate) all: Vec<f64>,
    /// Of the rows that were committed while the machine was ours.
    calm: Vec<f64>,
    /// What others had of the processors, in hundredths; of several runs the most.
    taken: f64,
}

impl Latencies {
    pub(crate) fn add(&mut self, other: Self) {
        self.all.extend(other.all);
        self.calm.extend(other.calm);
        self.taken = self.taken.max(other.taken);
        for latencies in [&mut self.all, &mut self.calm] {
            latencies.sort_by(f64::total_cmp);
        }
    }

    pub(crate) fn is_calm(&self) -> bool {
        self.calm.len() >= ENOUGH
    }

    /// What is held against a bound.
    pub(crate) fn counted(&self, calm: bool) -> &[f64] {
        if calm { &self.calm } else { &self.all }
    }

    /// What was counted and what was not.
    pub(crate) fn told(&self, percent: usize, calm: bool) -> String {
        let (rows, of, taken) = (self.calm.len(), self.all.len(), self.taken);
        let all = percentile(&self.all, percent);
        if calm {
            let calm = percentile(&self.calm, percent);
            format!(
                "{calm:.1} ms in {rows} rows of calm moments, {all:.1} in all {of}; the host took {taken:.0} %"
            )
        } else {
            format!(
                "{all:.1} ms in all {of} rows, too few of calm moments; the host took {taken:.0} %"
            )
        }
    }
}

/// With a bridge that runs already.
pub(crate) async fn measure(database: &Database, topic: &str, rate: usize) -> Latencies {
    let machine = Machine::watched();
    let warm_up = rate * WARM_UP_SECONDS;
    let rows = rate * SECONDS;
    let reader = {
        let topic = topic.to_owned();
        tokio::task::spawn_blocking(move || topic::consume(&topic, warm_up + rows))
    };
    produce(database, "warm-up", rate, warm_up).await;
    let began = Instant::now();
    let committed = produce(database, "row", rate, rows).await;
    let came = reader.await.unwrap();
    assert_complete(database, came.len(), warm_up + rows).await;
    let (mut all, mut calm) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    for (id, came) in came {
        let Some(committed) = committed.get(&id) else { continue };
        let latency = came.saturating_duration_since(*committed).as_secs_f64() * 1_000.0;
        all.push(latency);
        if machine.was_ours(*committed) {
            calm.push(latency);
        }
    }
    assert_eq!(all.len(), rows);
    let mut measured = Latencies::default();
    measured.add(Latencies { all, calm, taken: machine.taken_since(began) });
    measured
}

/// Says who has what did not come.
async fn assert_complete(database: &Database, came: usize, rows: usize) {
    let left = "SELECT count(*), count(claimed_by) FROM outbox.payment_outbox_pending";
    let left = database.connect().await.query_one(left, &[]).await.unwrap();
    let (pending, leased): (i64, i64) = (left.get(0), left.get(1));
    assert_eq!(came, rows, "records came, of rows; {pending} are pending, {leased} of them leased");
}

pub(crate) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Single rows of one participant, alone and while another has a hundred thousand.
pub(crate) async fn beside_a_crowd(report: &mut Report) {
    const SINGLES: usize = 100;
    const CROWD: usize = 100_000;
    let database = Database::new("crowd").await;
    let topic = topic::make("crowd").await;
    let bridge = Bridge::start("run", &database.url(), &topic);
    let reader = {
        let topic = topic.clone();
        tokio::task::spawn_blocking(move || topic::consume(&topic, 2 * SINGLES + CROWD))
    };
    let alone = produce(&database, "alone", 20, SINGLES).await;
    // One that is killed with a row in its hands keeps what is behind it waiting for a lease.
    everything_is_delivered(&database).await;
    drop(bridge);
    // Nobody delivers while the crowd gathers.
    database.fill(CROWD, 1, "crowd").await;
    let _bridge = Bridge::start("run", &database.url(), &topic);
    let beside = produce(&database, "beside", 20, SINGLES).await;
    let crowd = crowd_that_waits(&database).await;
    assert!(crowd > 0, "the last single rows had nobody beside them");
    let came = reader.await.unwrap();
    assert_complete(&database, came.len(), 2 * SINGLES + CROWD).await;
    let latencies = |committed: &HashMap<String, Instant>| {
        let latencies = came.iter().filter_map(|(id, came)| {
            Some(came.saturating_duration_since(*committed.get(id)?).as_secs_f64() * 1_000.0)
        });
        let mut latencies: Vec<f64> = latencies.collect();
        latencies.sort_by(f64::total_cmp);
        [50, 99].map(|percent| percentile(&latencies, percent))
    };
    let ([alone, alone_p99], [beside, beside_p99]) = (latencies(&alone), latencies(&beside));
    report.ratio(
        "single rows beside a participant with 100,000, p50",
        format!("alone {alone:.1} ms, beside {beside:.1} ms"),
        beside / alone,
        Bound::AtMost(2.0),
    );
    report.figure(
        "the same, p99",
        format!("alone {alone_p99:.1} ms, beside {beside_p99:.1} ms; {crowd} still waited then"),
    );
}

async fn everything_is_delivered(database: &Database) {
    let client = database.connect().await;
    let some = "SELECT EXISTS (SELECT FROM outbox.payment_outbox_pending)";
    while client.query_one(some, &[]).await.unwrap().get(0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// How many rows of the crowd are still to be delivered.
async fn crowd_that_waits(database: &Database) -> i64 {
    let left =
        "SELECT count(*) FROM outbox.payment_outbox_pending WHERE participant_id LIKE 'crowd-%'";
    database.connect().await.query_one(left, &[]).await.unwrap().get(0)
}

fn tell(report: &mut Report, case: &str, measured: &Latencies, percent: usize, bound: f64) {
    let calm = measured.is_calm();
    let figures = measured.told(percent, calm);
    if bound == f64::MAX {
        report.figure(case, figures);
    } else {
        let value = percentile(measured.counted(calm), percent);
        report.ratio(case, figures, value, Bound::AtMost(bound));
    }
}

/// Enqueues `rows` at `rate` a second, and tells when each was committed.
pub(crate) async fn produce(
    database: &Database,
    tag: &str,
    rate: usize,
    rows: usize,
) -> HashMap<String, Instant> {
    let began = Instant::now();
    let mut producers = Vec::new();
    for producer in 0..PRODUCERS {
        let client = database.connect().await;
        let tag = tag.to_owned();
        producers.push(tokio::spawn(async move {
            let statement = client.prepare(ENQUEUE).await.unwrap();
            let payload = format!(
                "{{\"amount\": \"10.00\", \"currency\": \"EUR\", \"note\": \"{}\"}}",
                "x".repeat(450)
            );
            let mut committed = Vec::new();
            for number in (producer..rows).step_by(PRODUCERS) {
                let due = began + Duration::from_secs_f64(number as f64 / rate as f64);
                tokio::time::sleep_until(due.into()).await;
                let (id, participant) = (format!("{tag}-{number}"), format!("p{}", number % 100));
                client.query_one(&statement, &[&id, &participant, &payload]).await.unwrap();
                committed.push((id, Instant::now()));
            }
            committed
        }));
    }
    let mut committed = HashMap::new();
    for producer in producers {
        committed.extend(producer.await.unwrap());
    }
    committed
}
