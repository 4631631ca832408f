//! Only who holds an unexpired lease records an outcome, and only once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;
use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::{Claimed, claim, claim_for, complete, enqueue, repair};
use super::steps::{claim_rail, count, refusal, run};
use super::support::Database;

const TERMINAL: &str =
    "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state IN ('DISPATCHED', 'FAILED')";

async fn leased(client: &Client, lane: &str) -> Claimed {
    enqueue(client, lane, lane).await;
    claim_rail(client, "w", 1, lane).await.remove(0)
}

/// What is told to another worker, to one with another token, to one whose lease has expired and
/// to one that wakes up after the row was claimed again.
async fn try_without_lease(database: &Database) -> [Option<String>; 4] {
    database.control_clock().await;
    let client = database.connect().await;
    let foreign = leased(&client, "foreign").await;
    let mut forged = leased(&client, "forged").await;
    forged.lease_token = Uuid::new_v4();
    let told_foreign = refusal(complete(&client, "thief", &foreign, "DISPATCHED").await);
    let told_forged = refusal(complete(&client, "w", &forged, "DISPATCHED").await);

    let late = leased(&client, "late").await;
    database.advance(Duration::from_secs(61)).await;
    let told_late = refusal(complete(&client, "w", &late, "DISPATCHED").await);

    let stale = leased(&client, "stale").await;
    database.advance(Duration::from_secs(61)).await;
    repair(&client, "r").await;
    database.advance(Duration::from_secs(2)).await;
    assert_eq!(claim_rail(&client, "w", 1, "stale").await.len(), 1);
    [
        told_foreign,
        told_forged,
        told_late,
        refusal(complete(&client, "w", &stale, "DISPATCHED").await),
    ]
}

#[tokio::test]
async fn an_outcome_without_a_lease_is_refused() {
    let database = Database::new().await;
    assert_eq!(try_without_lease(&database).await, [(); 4].map(|()| Some("P7002".to_owned())));
    assert_eq!(count(&database.connect().await, TERMINAL).await, 0);
}

#[tokio::test]
async fn each_part_of_the_fence_is_needed() {
    let database = Database::new().await;
    database.take_out("judge_outcomes", "r.claimed_by = p_worker_id AND", "").await;
    database.take_out("lock_leased_lanes", "AND p.claimed_by = p_worker_id", "").await;
    assert_eq!(try_without_lease(&database).await[0], None, "another worker's outcome counts");

    let database = Database::new().await;
    database.take_out("judge_outcomes", "AND a.lease_token = r.lease_token", "").await;
    let told = try_without_lease(&database).await;
    assert_eq!([&told[1], &told[3]], [&None, &None], "a forged and a stale token count");

    let database = Database::new().await;
    database.take_out("judge_outcomes", "AND r.lease_expires_at > p_now", "").await;
    assert_eq!(try_without_lease(&database).await[2], None, "an expired lease counts");
}

/// Sixteen connections record an outcome of one row at the same moment: what they are told, and
/// how many terminal outcomes the ledger has.
async fn sixteen_outcomes(database: &Database) -> (Vec<Option<String>>, i64) {
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    let row = claim(&client, "w", 1).await.remove(0);
    let start = Arc::new(Barrier::new(16));
    let mut calls = Vec::new();
    for n in 0..16 {
        let (client, row, start) = (database.connect().await, row.clone(), start.clone());
        calls.push(tokio::spawn(async move {
            start.wait().await;
            let state = if n % 2 == 0 { "DISPATCHED" } else { "FAILED" };
            refusal(complete(&client, "w", &row, state).await)
        }));
    }
    let mut told = Vec::new();
    for call in calls {
        told.push(call.await.unwrap());
    }
    let ours = format!("{TERMINAL} AND outbox_id = '{}'", row.outbox_id);
    (told, count(&client, &ours).await)
}

#[tokio::test]
async fn sixteen_outcomes_of_one_row_leave_one() {
    let (told, terminal) = sixteen_outcomes(&Database::new().await).await;
    assert_eq!(terminal, 1);
    assert_eq!(told.iter().filter(|told| told.is_none()).count(), 1);
    let lost = told.iter().flatten().all(|code| code == "P7001" || code == "P7002");
    assert!(lost, "{told:?}");
}

/// The outcome leaves its row where it was, and nobody looks into the ledger: two bugs at once.
async fn forget_the_outcome(database: &Database) {
    let look = "WHEN s.held AND s.terminal THEN 'blocked'";
    database.take_out("judge_outcomes", look, "WHEN false THEN 'blocked'").await;
    let delete = "DELETE FROM outbox.payment_outbox_pending AS p";
    let keep = "UPDATE outbox.payment_outbox_pending AS p SET attempt_count = p.attempt_count";
    database.take_out("complete_outbox_batch", delete, keep).await;
}

#[tokio::test]
async fn the_index_refuses_a_second_outcome_whatever_the_code_does() {
    let database = Database::new().await;
    forget_the_outcome(&database).await;
    let (told, terminal) = sixteen_outcomes(&database).await;
    assert_eq!(terminal, 1);
    assert_eq!(told.iter().filter(|told| told.as_deref() == Some("P7001")).count(), 15, "{told:?}");
}

#[tokio::test]
async fn without_the_index_a_row_gets_many_outcomes() {
    let database = Database::new().await;
    forget_the_outcome(&database).await;
    let target = "ON CONFLICT (outbox_id) WHERE state IN ('DISPATCHED', 'FAILED') DO NOTHING";
    database.take_out("complete_outbox_batch", target, "").await;
    let drop = "DROP INDEX outbox.payment_outbox_attempts_one_terminal_per_outbox";
    run(&database.connect().await, drop).await;
    let (_, terminal) = sixteen_outcomes(&database).await;
    assert!(terminal > 1);
}

/// What is told about a state that is no outcome, and about none at all.
async fn wrong_states(database: &Database) -> [Option<String>; 2] {
    let client = database.connect().await;
    let row = leased(&client, "bank").await;
    const NULL: &str = "SELECT FROM outbox.complete_outbox_attempt($1, $2, 'w', NULL)";
    let none = client.execute(NULL, &[&row.outbox_id, &row.lease_token]).await;
    [refusal(none), refusal(complete(&client, "w", &row, "ZOMBIE_REQUEUE").await)]
}

#[tokio::test]
async fn a_wrong_state_is_refused() {
    let database = Database::new().await;
    let wrong = Some("P7003".to_owned());
    assert_eq!(wrong_states(&database).await, [wrong.clone(), wrong]);
    assert_eq!(
        count(&database.connect().await, "SELECT count(*) FROM outbox.payment_outbox_attempts")
            .await,
        0
    );
}

#[tokio::test]
async fn without_the_check_a_worker_writes_any_state() {
    let database = Database::new().await;
    let check = "AND a.state IN ('DISPATCHED', 'RETRYABLE', 'FAILED')";
    database.take_out("judge_outcomes", check, "").await;
    assert_eq!(wrong_states(&database).await[1], None);
}

/// Seconds that a lease of 30 has left after a renewal for 90, for a row that is asked about and
/// owned, one with a forged token, and one of another worker.
async fn renew(database: &Database) -> Vec<i64> {
    let client = database.connect().await;
    for lane in ["owned", "forged", "foreign"] {
        enqueue(&client, lane, "bank").await;
    }
    let mut rows = claim_for(&client, "w", 2, 30).await;
    rows.extend(claim_for(&client, "other", 1, 30).await);
    rows[1].lease_token = Uuid::new_v4();
    let ids: Vec<Uuid> = rows.iter().map(|row| row.outbox_id).collect();
    let tokens: Vec<Uuid> = rows.iter().map(|row| row.lease_token).collect();
    let call = "SELECT outbox_id FROM outbox.renew_outbox_leases('w', $1, $2, 90)";
    let renewed = client.query(call, &[&ids, &tokens]).await.unwrap();
    assert!(renewed.iter().any(|row| row.get::<_, Uuid>(0) == ids[0]));
    let left = "SELECT extract(epoch FROM lease_expires_at - claimed_at)::int8 / 10 * 10 \
                FROM outbox.payment_outbox_pending ORDER BY sequence_id, array_position($1, outbox_id)";
    client.query(left, &[&ids]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_renewal_extends_what_is_owned_and_nothing_else() {
    let database = Database::new().await;
    assert_eq!(renew(&database).await, [90, 30, 30]);
    let turns = "SELECT count(*) FROM outbox.payment_outbox_turns AS t JOIN outbox.payment_outbox_pending AS p \
                 ON p.turn_id = t.turn_id AND p.lease_expires_at = t.due_at";
    assert_eq!(count(&database.connect().await, turns).await, 3, "lane and rows expire together");
}

#[tokio::test]
async fn without_the_fence_a_renewal_extends_everything() {
    let database = Database::new().await;
    database.take_out("held_rows", "AND a.lease_token = r.lease_token", "").await;
    assert_eq!(renew(&database).await, [90, 90, 30]);

    let database = Database::new().await;
    database.take_out("held_rows", "AND r.claimed_by = p_worker_id", "").await;
    database.take_out("lock_leased_lanes", "AND p.claimed_by = p_worker_id", "").await;
    assert_eq!(renew(&database).await, [90, 30, 90]);
}
