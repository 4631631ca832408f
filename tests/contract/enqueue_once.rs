//! A key stands for one row and one number, whoever asks and whenever.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::Barrier;
use uuid::Uuid;

use super::calls::{Enqueued, claim, complete};
use super::steps::{LEAKY_NUMBERS, Request, count, pid, run, until_blocked};
use super::support::Database;

const CALLERS: usize = 64;
const NUMBERS_USED: &str = "SELECT next_sequence_id - 1 FROM outbox.participant_outbox_sequences";

#[derive(Debug, PartialEq, Eq)]
struct Seen {
    rows: usize,
    new: usize,
    numbers_used: i64,
}

const ONCE: Seen = Seen { rows: 1, new: 1, numbers_used: 1 };

/// Many callers with one key, let go at the same moment.
async fn storm(database: &Database, isolation: &str, callers: usize) -> Seen {
    let request = Request::new("p", "bank");
    let start = Arc::new(Barrier::new(callers));
    let mut calls = Vec::new();
    for _ in 0..callers {
        let client = database.connect().await;
        run(&client, &format!("SET default_transaction_isolation = '{isolation}'")).await;
        let (request, start) = (request.clone(), start.clone());
        calls.push(tokio::spawn(async move {
            start.wait().await;
            request.call_until_settled(&client).await.unwrap()
        }));
    }
    let mut told: Vec<Enqueued> = Vec::new();
    for call in calls {
        told.push(call.await.unwrap());
    }
    let rows: HashSet<Uuid> = told.iter().map(|row| row.outbox_id).collect();
    let new = told.iter().filter(|row| row.is_new).count();
    let numbers_used = count(&database.connect().await, NUMBERS_USED).await;
    Seen { rows: rows.len(), new, numbers_used }
}

#[tokio::test]
async fn callers_with_one_key_get_one_row_at_read_committed() {
    assert_eq!(storm(&Database::new().await, "read committed", CALLERS).await, ONCE);
}

#[tokio::test]
async fn callers_with_one_key_get_one_row_at_repeatable_read() {
    assert_eq!(storm(&Database::new().await, "repeatable read", CALLERS).await, ONCE);
}

#[tokio::test]
async fn callers_with_one_key_get_one_row_at_serializable() {
    assert_eq!(storm(&Database::new().await, "serializable", CALLERS).await, ONCE);
}

/// Fewer callers: without the guard each of them has a row to write.
#[tokio::test]
async fn without_the_key_constraint_every_caller_gets_a_row() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        let database = Database::new().await;
        let drop =
            "ALTER TABLE outbox.payment_outbox_keys DROP CONSTRAINT payment_outbox_keys_pkey";
        run(&database.connect().await, drop).await;
        let seen = storm(&database, isolation, 8).await;
        assert_eq!(seen, Seen { rows: 8, new: 8, numbers_used: 8 }, "{isolation}");
    }
}

#[tokio::test]
async fn without_handing_back_every_caller_uses_a_number() {
    let database = Database::new().await;
    let back = "PERFORM outbox.bump_participant_outbox_seq(p_participant_id, p_tenant_id, -1);";
    database.take_out("enqueue_payment_outbox", back, "").await;
    let seen = storm(&database, "read committed", 8).await;
    assert_eq!(seen, Seen { rows: 1, new: 1, numbers_used: 8 });
}

/// The number that a caller gets who waited for another, which then rolled back.
async fn number_after_rollback(database: &Database) -> i64 {
    let (first, second, watcher) =
        (database.connect().await, database.connect().await, database.connect().await);
    run(&first, "BEGIN").await;
    Request::new("p", "bank").call(&first).await.unwrap();
    let waiting = pid(&second).await;
    let call = tokio::spawn(async move { Request::new("p", "bank").call(&second).await.unwrap() });
    until_blocked(&watcher, waiting).await;
    run(&first, "ROLLBACK").await;
    call.await.unwrap().sequence_id
}

#[tokio::test]
async fn a_rolled_back_caller_leaves_no_gap() {
    assert_eq!(number_after_rollback(&Database::new().await).await, 1);
}

#[tokio::test]
async fn numbers_from_a_sequence_would_leave_a_gap() {
    let database = Database::new().await;
    run(&database.connect().await, LEAKY_NUMBERS).await;
    let leaky = "RETURN nextval('leaky.numbers');";
    database.take_out("bump_participant_outbox_seq", "RETURN v_next - p_count;", leaky).await;
    assert_eq!(number_after_rollback(&database).await, 2);
}

/// What a key returns after its row has left pending with `outcome`: the SQLSTATE, or whether it is
/// still the same row.
async fn ask_again_after(database: &Database, outcome: &str) -> Result<bool, String> {
    let client = database.connect().await;
    let request = Request::new("p", "bank");
    let first = request.call(&client).await.unwrap();
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, outcome).await.unwrap();
    let again =
        request.call(&client).await.map_err(|error| super::calls::code(&error).to_owned())?;
    assert_eq!(count(&client, NUMBERS_USED).await, 1);
    let same = again.outbox_id == first.outbox_id && again.sequence_id == first.sequence_id;
    Ok(same && !again.is_new)
}

#[tokio::test]
async fn a_key_returns_its_row_after_completion() {
    for outcome in ["DISPATCHED", "FAILED"] {
        assert_eq!(ask_again_after(&Database::new().await, outcome).await, Ok(true), "{outcome}");
    }
}

#[tokio::test]
async fn a_finished_row_is_found_in_the_ledger_only() {
    let database = Database::new().await;
    let ledger = "FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_outbox_id";
    database.take_out("find_enqueued", ledger, &format!("{ledger} AND false")).await;
    assert_eq!(ask_again_after(&database, "DISPATCHED").await, Err("40001".to_owned()));
}
