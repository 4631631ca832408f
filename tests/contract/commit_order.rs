//! Per participant the order of the numbers is the order of the commits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::steps::{LEAKY_NUMBERS, Request, count, run};
use super::support::Database;

const PRODUCERS: usize = 8;
const TRANSACTIONS: usize = 25;
const PATIENCE: Duration = Duration::from_secs(20);

/// Participants of which a snapshot shows a number, but not all lower ones. Sound as a witness:
/// whatever a snapshot shows was committed before, and what it does not show was not.
const OVERTAKEN: &str = "SELECT count(*) FROM (SELECT FROM outbox.payment_outbox_pending \
    GROUP BY participant_id HAVING max(sequence_id) <> count(*)) AS p";

const BLOCKED: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0";

/// Transactions of one or two rows for two participants, every third rolled back.
async fn produce(client: Client, seed: usize, done: Arc<AtomicUsize>) {
    for turn in 0..TRANSACTIONS {
        run(&client, "BEGIN").await;
        for _ in 0..=(seed + turn) % 2 {
            Request::new(["p", "q"][(seed * 7 + turn) % 2], "bank").call(&client).await.unwrap();
        }
        let rolls_back = (seed * 5 + turn * 3 + turn / 4).is_multiple_of(3);
        run(&client, if rolls_back { "ROLLBACK" } else { "COMMIT" }).await;
    }
    done.fetch_add(1, Ordering::SeqCst);
}

/// How many snapshots saw a participant overtaken: while one transaction for `p` stays open, and
/// then while everybody runs.
async fn overtaken_snapshots(database: &Database) -> (i64, i64) {
    let (holder, reader) = (database.connect().await, database.connect().await);
    run(&holder, "BEGIN").await;
    Request::new("p", "bank").call(&holder).await.unwrap();
    let done = Arc::new(AtomicUsize::new(0));
    let mut producers = Vec::new();
    for seed in 0..PRODUCERS {
        producers.push(tokio::spawn(produce(database.connect().await, seed, done.clone())));
    }

    let deadline = Instant::now() + PATIENCE;
    // Everybody comes to wait for the holder, or, without the guard, to the end.
    while count(&reader, BLOCKED).await as usize + done.load(Ordering::SeqCst) < PRODUCERS {
        assert!(Instant::now() < deadline, "the producers neither wait nor end");
    }
    let while_open = count(&reader, OVERTAKEN).await;
    run(&holder, "COMMIT").await;
    let mut while_running = 0;
    while done.load(Ordering::SeqCst) < PRODUCERS {
        assert!(Instant::now() < deadline, "the producers do not end");
        while_running += count(&reader, OVERTAKEN).await;
    }
    for producer in producers {
        producer.await.unwrap();
    }
    (while_open, while_running + count(&reader, OVERTAKEN).await)
}

#[tokio::test]
async fn a_visible_number_means_that_all_lower_ones_are_visible() {
    let database = Database::new().await;
    assert_eq!(overtaken_snapshots(&database).await, (0, 0));
    let rows =
        count(&database.connect().await, "SELECT count(*) FROM outbox.payment_outbox_pending")
            .await;
    assert!(rows > 100, "{rows} rows prove little");
}

#[tokio::test]
async fn numbers_taken_without_the_participants_lock_overtake_each_other() {
    let database = Database::new().await;
    run(&database.connect().await, LEAKY_NUMBERS).await;
    let guard = "BEGIN\n  -- The row stays locked";
    let leaky = "BEGIN\n  RETURN nextval('leaky.numbers');\n  -- The row stays locked";
    database.take_out("bump_participant_outbox_seq", guard, leaky).await;
    let (while_open, _) = overtaken_snapshots(&database).await;
    assert!(while_open > 0, "the number of the open transaction is missing below visible ones");
}
