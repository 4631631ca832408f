//! A key whose row is being completed at the same moment.

use std::sync::Arc;

use super::calls::{claim, code, complete};
use super::steps::{Request, pid, run, until_blocked};
use super::support::Database;

/// The first look finds nothing, the row is completed, the second look finds nothing either.
const REVERSED: &str = "
    CREATE OR REPLACE FUNCTION outbox.find_enqueued(
      p_outbox_id uuid,
      OUT participant_id text, OUT tenant_id uuid, OUT rail_type text, OUT payload jsonb, OUT sequence_id bigint)
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    #variable_conflict use_column
    BEGIN
      SELECT a.participant_id, a.tenant_id, a.rail_type, a.payload, a.sequence_id
      INTO participant_id, tenant_id, rail_type, payload, sequence_id
      FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_outbox_id;
      PERFORM pg_advisory_xact_lock(77);
      IF sequence_id IS NULL THEN
        SELECT p.participant_id, p.tenant_id, p.rail_type, p.payload, p.sequence_id
        INTO participant_id, tenant_id, rail_type, payload, sequence_id
        FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = p_outbox_id;
      END IF;
      IF sequence_id IS NULL THEN RAISE EXCEPTION 'missed' USING ERRCODE = '40001'; END IF;
    END $$";

#[tokio::test]
async fn an_open_completion_neither_hides_nor_blocks_its_key() {
    let database = Database::new().await;
    let (worker, producer) = (database.connect().await, database.connect().await);
    let request = Request::new("p", "bank");
    let first = request.call(&producer).await.unwrap();
    let row = claim(&worker, "w", 1).await.remove(0);
    run(&producer, "SET lock_timeout = '300ms'").await;

    run(&worker, "BEGIN").await;
    complete(&worker, "w", &row, "DISPATCHED").await.unwrap();
    let during = request.call(&producer).await.unwrap();
    run(&worker, "COMMIT").await;
    let after = request.call(&producer).await.unwrap();

    for again in [during, after] {
        assert_eq!((again.outbox_id, again.sequence_id), (first.outbox_id, first.sequence_id));
        assert!(!again.is_new);
    }
}

/// Enqueue stops between its two looks, the row is completed meanwhile, enqueue goes on.
async fn complete_between_the_looks(database: &Database) -> Result<bool, String> {
    let (worker, producer, gate) =
        (database.connect().await, database.connect().await, database.connect().await);
    let request = Request::new("p", "bank");
    let first = request.call(&worker).await.unwrap();
    let row = claim(&worker, "w", 1).await.remove(0);

    run(&gate, "SELECT pg_advisory_lock(77)").await;
    let waiting = pid(&producer).await;
    let call = tokio::spawn(async move { request.call(&producer).await });
    until_blocked(&worker, waiting).await;
    complete(&worker, "w", &row, "DISPATCHED").await.unwrap();
    run(&gate, "SELECT pg_advisory_unlock(77)").await;

    let again = call.await.unwrap().map_err(|error| code(&error).to_owned())?;
    Ok(again.outbox_id == first.outbox_id && !again.is_new)
}

#[tokio::test]
async fn a_row_completed_between_the_two_looks_is_found() {
    let database = Database::new().await;
    let pause = "PERFORM pg_advisory_xact_lock(77);\n  IF sequence_id IS NULL THEN\n    SELECT a.";
    database.take_out("find_enqueued", "IF NOT FOUND THEN\n    SELECT a.", pause).await;
    assert_eq!(complete_between_the_looks(&database).await, Ok(true));
}

#[tokio::test]
async fn looking_in_the_ledger_first_would_miss_it() {
    let database = Database::new().await;
    run(&database.connect().await, REVERSED).await;
    assert_eq!(complete_between_the_looks(&database).await, Err("40001".to_owned()));
}

#[tokio::test]
async fn enqueue_racing_with_completion_returns_the_one_row() {
    let database = Database::new().await;
    let worker = database.connect().await;
    let callers = [Arc::new(database.connect().await), Arc::new(database.connect().await)];
    for round in 0..40 {
        let request = Request::new("p", "bank");
        let first = request.call(&worker).await.unwrap();
        let row = claim(&worker, "w", 1).await.remove(0);
        let asked = callers.clone().map(|caller| {
            let request = request.clone();
            tokio::spawn(async move { request.call(&caller).await.unwrap() })
        });
        complete(&worker, "w", &row, "DISPATCHED").await.unwrap();
        for ask in asked {
            let again = ask.await.unwrap();
            assert_eq!(again.outbox_id, first.outbox_id, "round {round}");
            assert!(!again.is_new, "round {round}");
        }
    }
}
