//! How long the shards of a worker that was killed stay without an owner.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::bridge::Bridge;
use crate::database::Database;
use crate::exactly_once;
use crate::latency::percentile;
use crate::report::{Bound, Report};

const LEASE_SECONDS: u64 = 10;
/// Each with half of 16 shards, one after the other: two at once would measure how fast two cores start sixteen producers.
const KILLS: usize = 15;
/// For sixteen new participants.
const ROWS_EVERY: Duration = Duration::from_millis(100);
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) async fn takeover(report: &mut Report) {
    let mut seconds = kill_again_and_again().await;
    seconds.sort_by(f64::total_cmp);
    let (p50, p99) = (percentile(&seconds, 50), percentile(&seconds, 99));
    let slowest = percentile(&seconds, 100);
    report.ratio(
        "a killed worker's shards are ready elsewhere, p99 in s",
        format!(
            "lease {LEASE_SECONDS} s, {} shards: p50 {p50:.2} s, p99 {p99:.2} s, slowest {slowest:.2} s",
            seconds.len()
        ),
        p99,
        Bound::AtMost(LEASE_SECONDS as f64 + 1.5),
    );
}

/// For each shard of each worker that was killed, the seconds until another was ready to deliver it.
async fn kill_again_and_again() -> Vec<f64> {
    let (database, topic, settings) = exactly_once::scene("takeover").await;
    let settings = format!(
        "{settings}delivery_timeout_seconds = 5\n[relay]\nlease_seconds = {LEASE_SECONDS}\n"
    );
    let start = || Bridge::start_with("run", &database.url(), &topic, &settings);
    let client = database.connect().await;
    let kills = async {
        let mut seconds = Vec::new();
        let mut old = start();
        shared_by(&client, 1).await;
        for _ in 0..KILLS {
            let before = owners(&client).await;
            let new = start();
            shared_by(&client, 2).await;
            let doomed = shards_of(&client, &before).await;
            // Dropped, it is killed with -9.
            drop(std::mem::replace(&mut old, new));
            seconds.extend(taken_over(&client, doomed, &before).await);
        }
        seconds
    };
    tokio::select! {
        seconds = kills => seconds,
        () = load(&database) => Vec::new(),
    }
}

/// Rows come in all the time, so that workers die with transactions open.
async fn load(database: &Database) {
    for number in 0.. {
        database.fill(16, 16, &format!("r{number}")).await;
        tokio::time::sleep(ROWS_EVERY).await;
    }
}

async fn shared_by(client: &Client, workers: i64) {
    let shared = "SELECT count(DISTINCT owner) = $1 AND bool_and(ready) AND max(n) - min(n) <= 1 \
        FROM (SELECT *, count(*) OVER (PARTITION BY owner) AS n FROM outbox.payment_outbox_shards) AS s";
    while !client.query_one(shared, &[&workers]).await.unwrap().get::<_, bool>(0) {
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn owners(client: &Client) -> Vec<String> {
    let owners = "SELECT DISTINCT owner FROM outbox.payment_outbox_shards";
    client.query(owners, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn shards_of(client: &Client, owners: &[String]) -> BTreeSet<i16> {
    let shards = "SELECT shard FROM outbox.payment_outbox_shards WHERE owner = ANY ($1)";
    client.query(shards, &[&owners]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Waits until none of these is the dead one's, and tells when that was so for each.
async fn taken_over(client: &Client, mut doomed: BTreeSet<i16>, dead: &[String]) -> Vec<f64> {
    let ready = "SELECT shard FROM outbox.payment_outbox_shards WHERE owner <> ALL ($1) AND ready";
    let (began, mut seconds) = (Instant::now(), Vec::new());
    while !doomed.is_empty() {
        for row in client.query(ready, &[&dead]).await.unwrap() {
            if doomed.remove(&row.get::<_, i16>(0)) {
                seconds.push(began.elapsed().as_secs_f64());
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    seconds
}
