//! What the bridge costs and how fast it is, on a real database and a real broker; ratios of one run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that panics has failed")]

#[path = "../sql/database.rs"]
#[allow(dead_code, reason = "the SQL benchmark uses the rest")]
mod database;
#[path = "../sql/drain.rs"]
mod drain;
#[path = "../sql/report.rs"]
mod report;

mod bridge;
mod latency;
mod throughput;
mod topic;

use report::Report;

#[tokio::main]
async fn main() {
    // `cargo bench` passes --bench; every other word names a case to run alone.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runs =
        |case: &str| wanted.is_empty() || wanted.iter().any(|word| case.contains(word.as_str()));
    let mut report = Report::default();
    if runs("latency") {
        latency::at(&mut report, 200, 5.0, 25.0).await;
        latency::at(&mut report, 1_000, f64::MAX, f64::MAX).await;
    }
    if runs("crowd") {
        latency::beside_a_crowd(&mut report).await;
    }
    if runs("drain") {
        throughput::drain(&mut report).await;
    }
    report.print();
}
