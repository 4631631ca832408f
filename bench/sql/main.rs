//! What the SQL functions cost, as ratios measured in one run: the case in question and the plain
//! case take turns, so that a noisy machine disturbs both alike.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that panics has failed")]

mod cases;
#[allow(dead_code, reason = "the benchmark of the bridge uses the rest")]
mod database;
mod drain;
mod enqueue;
mod flat;
mod report;
mod snapshot;
mod wake_up;

use cases::Cases;
use report::Report;

#[tokio::main]
async fn main() {
    let cases = Cases::asked();
    let mut report = Report::default();
    if cases.runs("plain") {
        flat::plain(&mut report).await;
    }
    if cases.runs("front") {
        flat::one_participant_in_front(&mut report).await;
    }
    if cases.runs("blocked") {
        flat::blocked_lanes(&mut report).await;
    }
    if cases.runs("backlog") {
        flat::deep_backlog(&mut report).await;
    }
    if cases.runs("enqueue") {
        enqueue::against_bare_insert(&mut report, 1).await;
        enqueue::against_bare_insert(&mut report, 8).await;
    }
    if cases.runs("wake-up") {
        wake_up::cost(&mut report).await;
    }
    if cases.runs("snapshot") {
        snapshot::held(&mut report).await;
    }
    report.print();
}
