//! `delivery = "exactly_once"` on a real broker: whatever dies, a reader of committed records sees every
//! row once and in order, and the ledger agrees with the topic record by record.

/// `EXACTLY_ONCE_ROUNDS` makes each of these tests longer: `make soak`.
fn rounds() -> usize {
    std::env::var("EXACTLY_ONCE_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"))
}

mod crashes;
mod faults;
mod late;
mod moves;
mod scene;
