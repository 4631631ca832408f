//! A row whose transaction commits long after it was enqueued is found, whatever a session remembers of where to look.

use std::time::Duration;

use super::calls::{claim, enqueue};
use super::steps::{claim_rail, run};
use super::support::Database;

const SECOND: Duration = Duration::from_secs(1);

/// A look that took ten seconds and found nothing.
const SLOW: &str = "SELECT outbox.remember_scan('outbox.claim_scan_' || to_hex(hashtext('')), '', '-infinity', now, now, '10 seconds') \
    FROM outbox.clock() AS now";

/// How many rows a claim gets of one that was enqueued before so many looks that took ten seconds each and found
/// nothing, and committed after them; and how many it gets half a minute later.
async fn found_after(database: &Database, slow_looks: usize) -> (usize, usize) {
    found_beside(database, slow_looks, false).await
}

/// The same of a session that claims for another rail in between.
async fn found_beside(
    database: &Database,
    slow_looks: usize,
    another_rail: bool,
) -> (usize, usize) {
    database.control_clock().await;
    let (worker, producer) = (database.connect().await, database.connect().await);
    assert_eq!(claim(&worker, "w", 10).await.len(), 0);
    assert_eq!(claim(&worker, "w", 10).await.len(), 0);
    run(&producer, "BEGIN").await;
    enqueue(&producer, "p", "bank").await;
    database.advance(SECOND).await;
    for _ in 0..slow_looks {
        run(&worker, SLOW).await;
    }
    if another_rail {
        // A slow look of its own, so that there is something to remember.
        run(&worker, &SLOW.replace("''", "'card'")).await;
        assert_eq!(claim_rail(&worker, "w", 10, "card").await.len(), 0);
    }
    run(&producer, "COMMIT").await;
    // Longer than twenty claims, shorter than the longest that anything is hidden for.
    database.advance(25 * SECOND).await;
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

/// A bridge claims for its rails in turn, in the same sessions.
#[tokio::test]
async fn a_claim_for_another_rail_does_not_make_a_session_forget_where_to_look() {
    assert_eq!(found_beside(&Database::new().await, 2, true).await, (0, 1));
}

#[tokio::test]
async fn with_one_memory_for_all_rails_every_claim_would_look_everywhere() {
    let database = Database::new().await;
    database.take_out("claim_outbox_batch", "hashtext(v_scope)", "hashtext('')").await;
    assert_eq!(found_beside(&database, 2, true).await, (1, 0));
}

#[tokio::test]
async fn without_a_look_at_the_one_before_a_slow_one_hides_it() {
    let database = Database::new().await;
    database.take_out("remember_scan", "20 * COALESCE(v_hint[3]::float8, 0), ", "").await;
    assert_eq!(found_after(&database, 1).await, (0, 1));
}

/// A session may be older than the functions that it calls.
#[tokio::test]
async fn what_an_older_version_remembered_is_forgotten() {
    const OLDER: &str = "SELECT set_config('outbox.claim_scan_' || to_hex(hashtext('')), concat_ws('|', now, now + 1000, ''), false) \
        FROM date_part('epoch', clock_timestamp()) AS now";
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    run(&client, OLDER).await;
    assert_eq!(claim(&client, "w", 10).await.len(), 1);
}

/// What a claim finds of a row that came after the clock was set back by a minute, by a session that remembers where to look.
async fn found_after_the_clock_was_set_back(database: &Database) -> usize {
    const BACK: &str = "UPDATE test.clock SET ahead = ahead - interval '1 minute'";
    database.control_clock().await;
    let client = database.connect().await;
    for _ in 0..2 {
        run(&client, SLOW).await;
    }
    run(&client, BACK).await;
    enqueue(&client, "p", "bank").await;
    claim(&client, "w", 10).await.len()
}

#[tokio::test]
async fn a_clock_that_is_set_back_hides_nothing() {
    assert_eq!(found_after_the_clock_was_set_back(&Database::new().await).await, 1);
}

#[tokio::test]
async fn without_a_look_at_the_clock_it_would_hide_what_is_new() {
    let database = Database::new().await;
    database.take_out("scan_start", "AND to_timestamp(v_hint[1]::float8) <= p_now", "").await;
    assert_eq!(found_after_the_clock_was_set_back(&database).await, 0);
}
