//! Random interleavings of everything that can be done to the outbox, from several connections,
//! against a small model: after every step the database holds what the model says and obeys its
//! own laws.
//!
//! PROPERTY_SEED runs one case, PROPERTY_CASES another number of them.

mod author;
mod bench;
mod case;
mod claiming;
mod enqueueing;
mod finishing;
mod laws;
mod leases;
mod model;
mod operating;
mod outcomes;
mod rng;
mod run;
mod snapshot;
mod state;
mod steps;
mod working;

use run::{Plan, Report, Sabotage, run};

const CASES: u64 = 1_000;
const ARCHIVE_CASES: u64 = 24;

/// A guard that is missing must be found within this many cases.
const CASES_TO_FIND: u64 = 60;

const EVERYTHING: [&str; 22] = [
    "enqueued",
    "repeated key",
    "conflicting key refused",
    "claimed",
    "DISPATCHED",
    "RETRYABLE",
    "FAILED",
    "P7001",
    "P7002",
    "P7003",
    "P7006",
    "released",
    "renewed",
    "repaired",
    "repaired by a claim",
    "paused",
    "resumed",
    "skipped",
    "replayed in a halted lane",
    "replayed elsewhere",
    "dismissed",
    "left out",
];

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

fn plan(cases: u64, archives: bool) -> Plan {
    let seed = number("PROPERTY_SEED");
    Plan {
        first_seed: seed.unwrap_or(0),
        cases: number("PROPERTY_CASES").unwrap_or(if seed.is_some() { 1 } else { cases }),
        archives,
        shrink: true,
        sabotage: None,
    }
}

/// No case failed, and whatever the cases are about did happen.
fn check(report: Report, happens: &[&str]) {
    if let Some(found) = report.found {
        panic!("{found}");
    }
    let missing = happens.iter().filter(|what| !report.tally.contains_key(**what));
    let missing: Vec<_> = missing.collect();
    let asked_for_fewer = number("PROPERTY_SEED").or(number("PROPERTY_CASES")).is_some();
    assert!(
        missing.is_empty() || asked_for_fewer,
        "{missing:?} did not happen: {:?}",
        report.tally
    );
    println!("{:?}", report.tally);
}

async fn finds(sabotage: Sabotage) -> bool {
    let plan =
        Plan { first_seed: 0, cases: CASES_TO_FIND, archives: false, shrink: false, sabotage };
    run(plan).await.found.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_interleaving_keeps_the_contract() {
    check(run(plan(CASES, false)).await, &EVERYTHING);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_interleaving_keeps_the_contract_while_the_ledger_is_archived() {
    check(run(plan(ARCHIVE_CASES, true)).await, &["archived"]);
}

#[tokio::test]
async fn without_the_lane_check_an_interleaving_breaks_the_contract() {
    let free = "r.next_attempt_at <= p_now AND r.lease_token IS NULL";
    assert!(finds(Some(("lease_lanes", free, "true"))).await);
}

#[tokio::test]
async fn without_taking_the_lane_s_turn_an_interleaving_breaks_the_contract() {
    let taken = "WHERE t.turn_id = ANY (ARRAY(SELECT k.turn_id FROM taken AS k))),";
    let left = "WHERE false),";
    assert!(finds(Some(("lease_lanes", taken, left))).await);
}

#[tokio::test]
async fn without_the_token_check_an_interleaving_breaks_the_contract() {
    assert!(finds(Some(("judge_outcomes", "a.lease_token = r.lease_token", "true"))).await);
}
