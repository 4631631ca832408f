//! Draining a backlog, against the same rows by SQL alone.

use std::time::{Duration, Instant};

use crate::bridge::Bridge;
use crate::database::Database;
use crate::drain::{Drained, Workers};
use crate::report::{Bound, Report};
use crate::topic;

const ROWS: usize = 200_000;
const PARTICIPANTS: usize = 1_000;
const ROUNDS: usize = 2;

pub(crate) async fn drain(report: &mut Report) {
    let (mut loops, mut bridges) = (Drained::default(), Drained::default());
    let (mut peak_mb, mut cpu) = (0.0_f64, Duration::ZERO);
    for round in 0..ROUNDS {
        let database = Database::new(&format!("loop{round}")).await;
        database.fill(ROWS, PARTICIPANTS, "r").await;
        loops.add(Workers::new(&database).await.drain(ROWS).await);

        let database = Database::new(&format!("drain{round}")).await;
        database.fill(ROWS, PARTICIPANTS, "r").await;
        let topic = topic::make("drain").await;
        let began = Instant::now();
        let mut bridge = Bridge::start("drain", &database.url(), &topic);
        bridge.ended().await;
        bridges.add(Drained { rows: ROWS, took: began.elapsed() });
        peak_mb = peak_mb.max(bridge.peak_mb());
        cpu += bridge.cpu();
        let seen = tokio::task::spawn_blocking(move || topic::consume(&topic, ROWS)).await.unwrap();
        assert_eq!(seen.len(), ROWS);
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
