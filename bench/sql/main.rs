//! What the SQL functions cost, as ratios measured in one run: the case in question and the plain
//! case take turns, so that a noisy machine disturbs both alike.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a benchmark that panics has failed")]

mod database;
mod drain;
mod enqueue;
mod flat;
mod report;
mod snapshot;
mod wake_up;

use report::Report;

#[tokio::main]
async fn main() {
    // `cargo bench` passes --bench; every other word names a case to run alone.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let runs =
        |case: &str| wanted.is_empty() || wanted.iter().any(|word| case.contains(word.as_str()));
    let mut report = Report::default();
    if runs("plain") {
        flat::plain(&mut report).await;
    }
    if runs("front") {
        flat::one_participant_in_front(&mut report).await;
    }
    if runs("blocked") {
        flat::blocked_lanes(&mut report).await;
    }
    if runs("backlog") {
        flat::deep_backlog(&mut report).await;
    }
    if runs("enqueue") {
        enqueue::against_bare_insert(&mut report, 1).await;
        enqueue::against_bare_insert(&mut report, 8).await;
    }
    if runs("wake-up") {
        wake_up::cost(&mut report).await;
    }
    if runs("snapshot") {
        snapshot::held(&mut report).await;
    }
    report.print();
}
