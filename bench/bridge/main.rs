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
mod exactly_once;
mod latency;
mod machine;
mod takeover;
mod throughput;
mod topic;
mod verify;

use cases::Cases;
use report::Report;

#[tokio::main]
async fn main() {
    let cases = Cases::asked();
    let mut report = Report::default();
    if ["drain", "crowd", "latency"].iter().any(|case| cases.runs(case)) {
        // Not counted: a broker that has just started compiles itself for a minute, on the same cores.
        latency::at(&mut Report::default(), 1_000, f64::MAX, f64::MAX).await;
    }
    if cases.runs("drain") {
        throughput::drain(&mut report).await;
    }
    if cases.runs("crowd") {
        latency::beside_a_crowd(&mut report).await;
    }
    if cases.runs("latency") {
        latency::at(&mut report, 1_000, f64::MAX, f64::MAX).await;
        latency::at(&mut report, 200, 5.0, 25.0).await;
    }
    if cases.runs("exactly-once-throughput") {
        exactly_once::drain(&mut report).await;
    }
    if cases.runs("exactly-once-delay") {
        exactly_once::latency(&mut report).await;
    }
    if cases.runs("takeover") {
        takeover::takeover(&mut report).await;
    }
    if cases.runs("verify") {
        verify::verify(&mut report).await;
    }
    report.print();
}
