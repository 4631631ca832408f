//! A row whose transaction commits long after it was enqueued is found, whatever a session remembers of where to look.

use std::time::Duration;

use super::calls::{claim, enqueue};
use super::steps::run;
use super::support::Database;

const SECOND: Duration = Duration::from_secs(1);

/// How many rows a claim gets of one that was enqueued before so many looks that took ten seconds each and found
/// nothing, and committed after them; and how many it gets half a minute later.
async fn found_after(database: &Database, slow_looks: usize) -> (usize, usize) {
    const SLOW: &str = "SELECT outbox.remember_scan('outbox.claim_scan', '', '-infinity', now, now, '10 seconds') \
        FROM outbox.clock() AS now";
    database.control_clock().await;
    let (worker, producer) = (database.connect().await, database.connect().await);
    assert_eq!(claim(&worker, "w", 10).await.len(), 0);
    run(&producer, "BEGIN").await;
    enqueue(&producer, "p", "bank").await;
    database.advance(SECOND).await;
    for _ in 0..slow_looks {
        run(&worker, SLOW).await;
    }
    run(&producer, "COMMIT").await;
    database.advance(SECOND).await;
    let at_once = claim(&worker, "w", 10).await.len();
    database.advance(30 * SECOND).await;
    (at_once, claim(&worker, "w", 10).await.len())
}

#[tokio::test]
async fn one_slow_look_hides_nothing() {
    assert_eq!(found_after(&Database::new().await, 1).await, (1, 0));
}

/// As with an old snapshot: the price of not reading everything each time.
#[tokio::test]
async fn after_slow_looks_alone_it_is_found_within_half_a_minute() {
    assert_eq!(found_after(&Database::new().await, 2).await, (0, 1));
}

#[tokio::test]
async fn without_a_look_at_the_one_before_a_slow_one_hides_it() {
    let database = Database::new().await;
    database.take_out("remember_scan", "20 * v_hint[3]::float8, ", "").await;
    assert_eq!(found_after(&database, 1).await, (0, 1));
}

/// A session may be older than the functions that it calls.
#[tokio::test]
async fn what_an_older_version_remembered_is_forgotten() {
    let database = Database::new().await;
    let client = database.connect().await;
    run(&client, "SET outbox.claim_scan = '1|99999999999|bank'").await;
    enqueue(&client, "p", "bank").await;
    assert_eq!(claim(&client, "w", 10).await.len(), 1);
}
