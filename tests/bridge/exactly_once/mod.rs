//! `delivery = "exactly_once"` on a real broker: whatever dies, a reader of committed records sees every
//! row once and in order, and the ledger agrees with the topic record by record.

/// `EXACTLY_ONCE_ROUNDS` makes each of these tests longer: `make soak`.
fn rounds() -> usize {
    std::env::var("EXACTLY_ONCE_ROUNDS").map_or(1, |rounds| rounds.parse().expect("a number"))
}

/// Some scenes at the same time. They end when all are over: who drops a database waits for everybody that
/// is about to connect to the server, and must not be the one for whom they wait.
async fn together<T>(scenes: impl IntoIterator<Item: Future<Output = T>>) {
    futures_util::future::join_all(scenes).await;
}

mod company;
mod crashes;
mod drains;
mod everything;
mod failover;
mod faults;
mod late;
mod lone;
mod moves;
mod names;
mod neighbours;
mod refused;
mod retention;
mod scene;
mod servers;
mod survivors;
mod suspects;
mod unreachable;
