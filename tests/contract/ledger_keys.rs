//! An attempt number is used once, and a row has one terminal outcome, whatever the code above does.

use tokio_postgres::{Client, Error};

use crate::calls::{claim, complete, enqueue};
use crate::support::Database;

/// A copy of the one attempt of `alice`, forged with another number and state.
const FORGE: &str = "INSERT INTO outbox.payment_outbox_attempts (
        attempt_id, outbox_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type, payload,
        headers, attempt_no, state, claimed_at, completed_at, created_at, worker_id, lease_token)
    SELECT gen_random_uuid(), outbox_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type,
           payload, headers, $1, $2::text::outbox.outbox_attempt_state, claimed_at, completed_at, created_at,
           worker_id, lease_token
    FROM outbox.payment_outbox_attempts WHERE participant_id = 'alice' LIMIT 1";

const ONE_TERMINAL: &str = "payment_outbox_attempts_one_terminal_per_outbox";

/// A database in which the ledger says of a row of `alice` that it is `state`.
async fn with_an_attempt(state: &str) -> Database {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "ach").await;
    let row = claim(&client, "worker", 1).await.remove(0);
    complete(&client, "worker", &row, state).await.unwrap();
    database
}

/// The index of the ledger as a whole that a partition's index, which the error names, belongs to.
async fn violated(client: &Client, error: &Error) -> (String, String) {
    const PARENT: &str = "SELECT p.relname::text FROM pg_class AS c \
        JOIN pg_inherits AS i ON i.inhrelid = c.oid JOIN pg_class AS p ON p.oid = i.inhparent \
        WHERE c.relname = $1 AND c.relnamespace = 'outbox'::regnamespace";
    let told = error.as_db_error().expect("the server refused it");
    let index = told.constraint().expect("a unique violation names its constraint");
    let parent = client.query_one(PARENT, &[&index]).await.unwrap().get(0);
    (told.code().code().to_owned(), parent)
}

async fn forge(database: &Database, attempt_no: i32, state: &str) -> Result<u64, (String, String)> {
    let client = database.connect().await;
    match client.execute(FORGE, &[&attempt_no, &state]).await {
        Ok(rows) => Ok(rows),
        Err(error) => Err(violated(&client, &error).await),
    }
}

fn refused_by(index: &str) -> Result<u64, (String, String)> {
    Err(("23505".to_owned(), index.to_owned()))
}

#[tokio::test]
async fn an_attempt_number_is_used_once() {
    let database = with_an_attempt("RETRYABLE").await;
    let primary_key = refused_by("payment_outbox_attempts_pkey");
    assert_eq!(forge(&database, 1, "RETRYABLE").await, primary_key);
    assert_eq!(forge(&database, 1, "ZOMBIE_REQUEUE").await, primary_key);
    assert_eq!(forge(&database, 2, "RETRYABLE").await, Ok(1));
}

#[tokio::test]
async fn without_its_primary_key_an_attempt_number_is_used_twice() {
    let database = with_an_attempt("RETRYABLE").await;
    let drop =
        "ALTER TABLE outbox.payment_outbox_attempts DROP CONSTRAINT payment_outbox_attempts_pkey";
    database.connect().await.batch_execute(drop).await.unwrap();
    assert_eq!(forge(&database, 1, "RETRYABLE").await, Ok(1));
}

#[tokio::test]
async fn a_second_terminal_outcome_is_refused_by_the_named_index() {
    for first in ["DISPATCHED", "FAILED"] {
        let database = with_an_attempt(first).await;
        for second in ["DISPATCHED", "FAILED"] {
            assert_eq!(
                forge(&database, 2, second).await,
                refused_by(ONE_TERMINAL),
                "{first} {second}"
            );
        }
        assert_eq!(
            forge(&database, 2, "RETRYABLE").await,
            Ok(1),
            "an outcome that is not terminal"
        );
    }
}

#[tokio::test]
async fn without_that_index_a_row_is_delivered_and_failed() {
    let database = with_an_attempt("DISPATCHED").await;
    let client = database.connect().await;
    client.batch_execute(&format!("DROP INDEX outbox.{ONE_TERMINAL}")).await.unwrap();
    assert_eq!(forge(&database, 2, "FAILED").await, Ok(1));
}

#[tokio::test]
async fn an_event_is_written_once() {
    const AGAIN: &str = "INSERT INTO outbox.payment_outbox_events SELECT * FROM outbox.payment_outbox_events LIMIT 1";
    let database = with_an_attempt("DISPATCHED").await;
    let client = database.connect().await;
    let error = client.execute(AGAIN, &[]).await.unwrap_err();
    let refusal = ("23505".to_owned(), "payment_outbox_events_pkey".to_owned());
    assert_eq!(violated(&client, &error).await, refusal);
    let drop =
        "ALTER TABLE outbox.payment_outbox_events DROP CONSTRAINT payment_outbox_events_pkey";
    client.batch_execute(drop).await.unwrap();
    assert_eq!(client.execute(AGAIN, &[]).await.unwrap(), 1, "nothing else refuses it");
}
