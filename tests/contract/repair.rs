//! Every expired lease leaves one ZOMBIE_REQUEUE, whoever finds it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio_postgres::Client;

use super::calls::{claim, code, complete, enqueue, repair};
use super::steps::{count, never_wait, run};
use super::support::Database;

const ZOMBIES: &str =
    "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'ZOMBIE_REQUEUE'";
const REPAIR: &str = "SELECT outbox_id FROM outbox.repair_expired_leases(500, 'r')";
const EXPIRY: Duration = Duration::from_secs(61);

/// Five lanes of two rows whose worker is gone.
async fn abandoned(database: &Database) -> Client {
    database.control_clock().await;
    let client = database.connect().await;
    for n in 0..10 {
        enqueue(&client, ["a", "b", "c", "d", "e"][n % 5], "bank").await;
    }
    assert_eq!(claim(&client, "gone", 100).await.len(), 10);
    database.advance(EXPIRY).await;
    client
}

/// Sixteen repairers at the same moment and one afterwards: how many rows they report, and how
/// many ZOMBIE_REQUEUE there are.
async fn sixteen_repairers(database: &Database) -> (usize, i64) {
    let client = abandoned(database).await;
    let start = Arc::new(Barrier::new(16));
    let mut calls = Vec::new();
    for _ in 0..16 {
        let (repairer, start) = (database.connect().await, start.clone());
        calls.push(tokio::spawn(async move {
            start.wait().await;
            repair(&repairer, "r").await.len()
        }));
    }
    let mut reported = 0;
    for call in calls {
        reported += call.await.unwrap();
    }
    reported += repair(&client, "r").await.len();
    (reported, count(&client, ZOMBIES).await)
}

#[tokio::test]
async fn sixteen_repairers_repair_each_lease_once() {
    let database = Database::new().await;
    assert_eq!(sixteen_repairers(&database).await, (10, 10));
    let twice =
        format!("SELECT count(*) FROM ({ZOMBIES} GROUP BY outbox_id HAVING count(*) > 1) AS z");
    assert_eq!(count(&database.connect().await, &twice).await, 0);
}

#[tokio::test]
async fn a_repair_that_leaves_the_lease_is_repeated() {
    let database = Database::new().await;
    let clear = "claimed_by = NULL, claimed_at = NULL, lease_token = NULL, lease_expires_at = NULL, turn_id = NULL,";
    database.take_out("requeue_expired", clear, "").await;
    let (reported, zombies) = sixteen_repairers(&database).await;
    assert!(reported > 10 && zombies > 10, "{reported} reported, {zombies} written");
}

/// A repairs and keeps its transaction open, B repairs, A commits, B repairs again.
async fn interleaved(database: &Database) -> Result<Vec<usize>, String> {
    let a = abandoned(database).await;
    let b = database.connect().await;
    never_wait(&b).await;
    run(&a, "BEGIN").await;
    let mut told = vec![a.query(REPAIR, &[]).await];
    told.push(b.query(REPAIR, &[]).await);
    run(&a, "COMMIT").await;
    told.push(b.query(REPAIR, &[]).await);
    told.into_iter()
        .map(|rows| rows.map(|rows| rows.len()).map_err(|error| code(&error).to_owned()))
        .collect()
}

#[tokio::test]
async fn repairers_pass_each_other_by() {
    assert_eq!(interleaved(&Database::new().await).await, Ok(vec![10, 0, 0]));
}

#[tokio::test]
async fn without_skipping_a_repairer_waits_for_another() {
    let database = Database::new().await;
    database.take_out("repair_expired_leases", "SKIP LOCKED", "").await;
    assert_eq!(interleaved(&database).await, Err("55P03".to_owned()));
}

/// A claim that finds leases that nobody has repaired for a while: what it gets, what it wrote, and what can be
/// claimed two seconds later.
async fn claim_finds_them(database: &Database) -> (usize, i64, usize) {
    let client = abandoned(database).await;
    assert_eq!(claim(&client, "w", 100).await.len(), 0);
    assert_eq!(count(&client, ZOMBIES).await, 0, "who repairs on purpose comes first");
    database.advance(Duration::from_secs(3)).await;
    let at_once = claim(&client, "w", 100).await.len();
    let zombies = count(&client, ZOMBIES).await;
    database.advance(Duration::from_secs(2)).await;
    (at_once, zombies, claim(&client, "w", 100).await.len())
}

#[tokio::test]
async fn a_claim_that_finds_an_expired_lease_repairs_it() {
    assert_eq!(claim_finds_them(&Database::new().await).await, (0, 10, 10));
}

#[tokio::test]
async fn a_claim_that_does_not_look_leaves_them_for_ever() {
    let database = Database::new().await;
    let look = "PERFORM outbox.repair_when_expired(p_worker_id);";
    database.take_out("claim_outbox_batch", look, "").await;
    assert_eq!(claim_finds_them(&database).await, (0, 0, 0));
}

/// From here on the clock goes by [`Database::advance`] alone.
const STOP_THE_CLOCK: &str = "DO $stop$ BEGIN EXECUTE format('CREATE OR REPLACE FUNCTION outbox.clock() RETURNS timestamptz \
    LANGUAGE sql VOLATILE AS $$ SELECT %L::timestamptz + (SELECT ahead FROM test.clock) $$', clock_timestamp()); END $stop$";

#[tokio::test]
async fn a_claim_that_found_no_expired_lease_looks_again_a_second_later() {
    let database = Database::new().await;
    let client = abandoned(&database).await;
    run(&client, STOP_THE_CLOCK).await;
    let mut found = Vec::new();
    // They expired a second ago, and are looked for when that was three seconds ago.
    for wait in [1_300, 900, 200] {
        database.advance(Duration::from_millis(wait)).await;
        claim(&client, "w", 100).await;
        found.push(count(&client, ZOMBIES).await);
    }
    assert_eq!(found, [0, 0, 10]);
}

/// (attempt_no, attempt_count, milliseconds until it is due) of a row in whose cache somebody has
/// written 50.
async fn repaired_row(database: &Database) -> (i64, i64, i64) {
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    run(&client, "UPDATE outbox.payment_outbox_pending SET attempt_count = 50").await;
    claim(&client, "gone", 1).await;
    database.advance(EXPIRY).await;
    assert_eq!(repair(&client, "r").await.len(), 1);
    let row = "SELECT a.attempt_no::int8, p.attempt_count::int8, \
               (1000 * extract(epoch FROM p.next_attempt_at - a.completed_at))::int8 \
               FROM outbox.payment_outbox_pending AS p JOIN outbox.payment_outbox_attempts AS a USING (outbox_id)";
    let row = client.query_one(row, &[]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

#[tokio::test]
async fn a_repaired_row_keeps_its_count_and_is_due_in_a_second() {
    assert_eq!(repaired_row(&Database::new().await).await, (1, 50, 1000));
}

#[tokio::test]
async fn each_part_of_a_repair_is_needed() {
    let database = Database::new().await;
    let greatest = "GREATEST(p.attempt_count, x.last_no + 1)";
    database.take_out("requeue_expired", greatest, "x.last_no + 1").await;
    database.take_out("requeue_expired", "p_now + interval '1 second'", "p_now").await;
    assert_eq!(repaired_row(&database).await, (1, 1, 0));
}

/// How many rows come back before the lane is paused, of at most seven, and how many events say so.
async fn until_paused(database: &Database) -> (usize, i64) {
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    let mut came_back = 0;
    while came_back < 7 && !claim(&client, "gone", 1).await.is_empty() {
        database.advance(EXPIRY).await;
        came_back += repair(&client, "r").await.len();
        database.advance(Duration::from_secs(2)).await;
    }
    let paused = "SELECT count(*) FROM outbox.payment_outbox_events WHERE event_type = 'LANE_PAUSED' \
                  AND participant_id = 'p' AND actor = 'r' AND reason LIKE 'LEASE_EXPIRED_REPEATEDLY%'";
    (came_back, count(&client, paused).await)
}

#[tokio::test]
async fn a_row_that_comes_back_five_times_pauses_its_lane() {
    let database = Database::new().await;
    assert_eq!(until_paused(&database).await, (5, 1));
    let client = database.connect().await;
    run(&client, "SELECT outbox.resume_outbox_lane('p', 'bank', 'operator', 'fixed')").await;
    let row = claim(&client, "w", 1).await.remove(0);
    assert_eq!(row.attempt_count, 5);
    assert_eq!(complete(&client, "w", &row, "DISPATCHED").await.unwrap().0, 6);
}

#[tokio::test]
async fn without_the_limit_a_row_comes_back_for_ever() {
    let database = Database::new().await;
    database.take_out("requeue_expired", "r.zombies >= 4", "r.zombies >= 99").await;
    assert_eq!(until_paused(&database).await, (7, 0));
}
