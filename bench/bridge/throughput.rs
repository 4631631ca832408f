//! Draining a backlog, against the same rows by SQL alone.

use std::time::{Duration, Instant};

use crate::bridge::Bridge;
use crate::database::Database;
use crate::drain::{Drained, Workers};
use crate::report::{Bound, Report};
use crate::topic;

/// How many a drain has.
pub(crate) const ROWS: usize = 200_000;
const PARTICIPANTS: usize = 1_000;
const ROUNDS: usize = 4;
/// Drains that are not counted: a broker that has just started compiles what they need, on the same cores. It takes four times
/// as long for a row until it has had half a million, and still a third longer until it has had two.
pub(crate) const WARM_UPS: usize = 10;

/// What a drain took, and what the bridge used.
pub(crate) struct Drain {
    pub(crate) drained: Drained,
    pub(crate) cpu: Duration,
    peak_mb: f64,
}

pub(crate) async fn drain(report: &mut Report) {
    // One for all: that a broker lays out the files of a new topic is not what is measured.
    let topic = topic::make("drain").await;
    for round in 0..WARM_UPS {
        let database = Database::new(&format!("warm_up{round}")).await;
        drained(database, &topic, "").await;
    }
    let (mut loops, mut bridges) = (Drained::default(), Drained::default());
    let (mut peak_mb, mut cpu) = (0.0_f64, Duration::ZERO);
    for round in 0..ROUNDS {
        let database = Database::new(&format!("loop{round}")).await;
        database.fill(ROWS, PARTICIPANTS, "r").await;
        loops.add(Workers::new(&database).await.drain(ROWS).await);
        database.remove().await;

        let database = Database::new(&format!("drain{round}")).await;
        let drain = drained(database, &topic, "").await;
        bridges.add(drain.drained);
        peak_mb = peak_mb.max(drain.peak_mb);
        cpu += drain.cpu;
    }
    let figures = format!(
        "SQL loop {:.0} rows/s, drain {:.0} rows/s",
        loops.per_second(),
        bridges.per_second()
    );
    report.ratio(
        "drain of 512-byte rows to Kafka against the SQL loop (claim + complete, two workers)",
        figures,
        bridges.per_second() / loops.per_second(),
        Bound::AtLeast(0.7),
    );
    report.ratio(
        "resident memory at its peak",
        format!("{peak_mb:.0} MB"),
        peak_mb,
        Bound::AtMost(60.0),
    );
    let per_100k = cpu.as_secs_f64() * 100_000.0 / (ROWS * ROUNDS) as f64;
    report.figure("processor time of the bridge for 100,000 rows", format!("{per_100k:.1} s"));
}

/// Fills the database, drains it with these settings of the rail, and removes it. Everything is in the topic afterwards.
pub(crate) async fn drained(database: Database, topic: &str, settings: &str) -> Drain {
    database.fill(ROWS, PARTICIPANTS, "r").await;
    let ends = topic::ends(topic);
    let began = Instant::now();
    let mut bridge = Bridge::start_with("drain", &database.url(), topic, settings);
    bridge.ended().await;
    let drained = Drained { rows: ROWS, took: began.elapsed() };
    let left = "SELECT count(*) FROM outbox.payment_outbox_pending";
    let left: i64 = database.connect().await.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "rows are left");
    database.remove().await;
    let topic = topic.to_owned();
    let consume = move || topic::consume_from(&topic, &ends, ROWS);
    let seen = tokio::task::spawn_blocking(consume).await.unwrap();
    assert_eq!(seen.len(), ROWS);
    Drain { drained, cpu: bridge.cpu(), peak_mb: bridge.peak_mb() }
}
