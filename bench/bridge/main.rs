//! What the bridge costs and how fast it is, on a real database and a real broker; ratios of one run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that panics has failed")]

#[path = "../sql/cases.rs"]
mod cases;
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
mod verify;

use cases::Cases;
use report::Report;

#[tokio::main]
async fn main() {
    let cases = Cases::asked();
    let mut report = Report::default();
    if cases.runs("latency") {
        // The busier one first: it warms the servers up for the other.
        latency::at(&mut report, 1_000, f64::MAX, f64::MAX).await;
        latency::at(&mut report, 200, 5.0, 25.0).await;
    }
    if cases.runs("crowd") {
        latency::beside_a_crowd(&mut report).await;
    }
    if cases.runs("drain") {
        throughput::drain(&mut report).await;
    }
    if cases.runs("verify") {
        verify::verify(&mut report).await;
    }
    report.print();
}
