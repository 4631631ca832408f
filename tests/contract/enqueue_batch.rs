//! Many rows in one call.

use tokio_postgres::{Client, Error, Row};
use uuid::Uuid;

use super::calls::{claim, code, complete};
use super::steps::{Request, count, pid, run, until_blocked};
use super::support::Database;

/// One row of a batch, as JSON.
fn row(participant: &str, instruction: &str, amount: &str) -> String {
    format!(
        r#"{{"instruction_id": "{instruction}", "participant_id": "{participant}", "idempotency_key": "key",
            "rail_type": "bank", "payload": {{"amount": {amount}}}}}"#
    )
}

async fn enqueue(client: &Client, rows: &[String], report: bool) -> Result<Vec<Row>, Error> {
    const CALL: &str = "SELECT row_no, outbox_id, sequence_id, is_new, error_code, error_message \
        FROM outbox.enqueue_payment_outbox_batch($1::text::jsonb, $2)";
    client.query(CALL, &[&format!("[{}]", rows.join(",")), &report]).await
}

/// New rows of this many participants in turn, in one statement.
const BULK: &str = "SELECT count(*) FILTER (WHERE is_new) FROM outbox.enqueue_payment_outbox_batch((
    SELECT jsonb_agg(jsonb_build_object('instruction_id', 'i' || i, 'participant_id', 'p' || i % $2,
      'idempotency_key', 'k', 'rail_type', 'bank', 'payload', '{}'::jsonb)) FROM generate_series(0, $1 - 1) AS i))";

#[tokio::test]
async fn a_hundred_thousand_rows_are_one_call() {
    let database = Database::new().await;
    let client = database.connect().await;
    let locks: String =
        client.query_one("SHOW max_locks_per_transaction", &[]).await.unwrap().get(0);
    assert_eq!(locks, "64", "the proof is about the default");
    let new: i64 = client.query_one(BULK, &[&100_000, &20_000]).await.unwrap().get(0);
    assert_eq!(new, 100_000);
    // In the order of the batch, without a gap: the instruction's number tells the place.
    let wrong = "SELECT count(*) FROM outbox.payment_outbox_pending \
                 WHERE sequence_id <> substr(instruction_id, 2)::int / 20000 + 1";
    assert_eq!(count(&client, wrong).await, 0);
    assert_eq!(count(&client, "SELECT count(*) FROM outbox.payment_outbox_turns").await, 20_000);
    assert_eq!(claim(&client, "w", 500).await.len(), 500);
}

/// How many locks the server's lock table holds for a batch of 2,000 participants.
async fn locks_of_a_batch(database: &Database) -> i64 {
    let client = database.connect().await;
    run(&client, "BEGIN").await;
    client.query_one(BULK, &[&2_000, &2_000]).await.unwrap();
    count(&client, "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()").await
}

#[tokio::test]
async fn a_batch_takes_no_lock_for_each_participant() {
    assert!(locks_of_a_batch(&Database::new().await).await < 200);
}

#[tokio::test]
async fn an_advisory_lock_for_each_participant_would_fill_the_lock_table() {
    let database = Database::new().await;
    let advisory = "PERFORM pg_advisory_xact_lock(hashtextextended(p_participant_id, 0)); RETURN v_next - p_count;";
    database.take_out("bump_participant_outbox_seq", "RETURN v_next - p_count;", advisory).await;
    assert!(locks_of_a_batch(&database).await > 1_900);
}

#[tokio::test]
async fn duplicates_in_a_batch_and_of_older_rows_are_told_their_row() {
    let database = Database::new().await;
    let client = database.connect().await;
    let old =
        enqueue(&client, &[row("p", "pending", "1"), row("p", "done", "1")], false).await.unwrap();
    let old: Vec<Uuid> = old.iter().map(|row| row.get("outbox_id")).collect();
    let first = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &first, "DISPATCHED").await.unwrap();

    let rows = [
        row("p", "pending", "1"),
        row("p", "new", "1"),
        row("p", "done", "1"),
        row("p", "new", "1"),
    ];
    let told = enqueue(&client, &rows, false).await.unwrap();
    let ids: Vec<Uuid> = told.iter().map(|row| row.get("outbox_id")).collect();
    let new: Vec<bool> = told.iter().map(|row| row.get("is_new")).collect();
    let numbers: Vec<i64> = told.iter().map(|row| row.get("sequence_id")).collect();
    assert_eq!([ids[0], ids[2], ids[3]], [old[0], old[1], ids[1]]);
    assert_eq!(new, [false, true, false, false]);
    assert_eq!(numbers, [1, 3, 2, 3]);
    assert_eq!(Request::new("p", "bank").call(&client).await.unwrap().sequence_id, 4, "no gap");
}

#[tokio::test]
async fn without_handing_back_duplicates_leave_a_gap() {
    let database = Database::new().await;
    database.take_out("insert_new_rows", "WHERE u.unused > 0", "WHERE false").await;
    let client = database.connect().await;
    enqueue(&client, &[row("p", "new", "1"), row("p", "new", "1")], false).await.unwrap();
    assert_eq!(Request::new("p", "bank").call(&client).await.unwrap().sequence_id, 3);
}

/// A good row, a conflict with an older row, one with the good row, and a bad rail.
fn mixed() -> Vec<String> {
    let bad = row("p", "bad", "1").replace("\"bank\"", "\"dlq\"");
    vec![row("p", "good", "1"), row("p", "old", "1.0"), row("q", "good", "1"), bad]
}

#[tokio::test]
async fn conflicts_are_reported_for_each_row() {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, &[row("p", "old", "1")], false).await.unwrap();
    let told = enqueue(&client, &mixed(), true).await.unwrap();
    let codes: Vec<Option<String>> = told.iter().map(|row| row.get("error_code")).collect();
    let codes: Vec<Option<&str>> = codes.iter().map(Option::as_deref).collect();
    assert_eq!(codes, [None, Some("P7004"), Some("P7004"), Some("P7104")]);
    let texts: Vec<Option<String>> = told.iter().map(|row| row.get("error_message")).collect();
    assert!(texts[1].as_ref().unwrap().ends_with("another p_payload"), "{texts:?}");
    assert!(texts[2].as_ref().unwrap().ends_with("another p_participant_id"), "{texts:?}");
    assert_eq!(count(&client, "SELECT count(*) FROM outbox.payment_outbox_pending").await, 2);
}

/// The SQLSTATE and text with which a batch that holds one conflict fails as a whole.
async fn raise_a_conflict(database: &Database) -> Option<(String, String)> {
    let client = database.connect().await;
    enqueue(&client, &[row("p", "old", "1")], false).await.unwrap();
    let rows = [row("p", "good", "1"), row("p", "old", "2")];
    let error = enqueue(&client, &rows, false).await.err()?;
    assert_eq!(count(&client, "SELECT count(*) FROM outbox.payment_outbox_pending").await, 1);
    Some((code(&error).to_owned(), error.as_db_error().unwrap().message().to_owned()))
}

#[tokio::test]
async fn a_conflict_is_raised_and_names_its_row() {
    let (code, text) = raise_a_conflict(&Database::new().await).await.unwrap();
    assert_eq!(code, "P7004");
    assert!(text.starts_with("row 2 of p_rows:") && text.ends_with("another p_payload"), "{text}");
}

#[tokio::test]
async fn without_the_raise_a_batch_hides_its_conflict() {
    let database = Database::new().await;
    database.take_out("report_conflict", "IF NOT p_report_errors THEN", "IF false THEN").await;
    assert_eq!(raise_a_conflict(&database).await, None);
}

/// Two batches over a and z in opposite order, both stopped at m by a third producer, then let go.
async fn opposite_batches(database: &Database) -> Vec<Option<String>> {
    let (gate, watcher) = (database.connect().await, database.connect().await);
    run(&gate, "BEGIN").await;
    Request::new("m", "bank").call(&gate).await.unwrap();
    let mut calls = Vec::new();
    for order in [["a", "m", "z"], ["z", "m", "a"]] {
        let client = database.connect().await;
        run(&client, "SET deadlock_timeout = '20ms'").await;
        let waiting = pid(&client).await;
        let rows = order.map(|participant| row(participant, &Uuid::new_v4().to_string(), "1"));
        calls.push(tokio::spawn(async move { enqueue(&client, &rows, false).await }));
        until_blocked(&watcher, waiting).await;
    }
    run(&gate, "COMMIT").await;
    let mut told = Vec::new();
    for call in calls {
        told.push(super::steps::refusal(call.await.unwrap()));
    }
    told
}

#[tokio::test]
async fn batches_in_opposite_order_do_not_deadlock() {
    assert_eq!(opposite_batches(&Database::new().await).await, [None, None]);
}

#[tokio::test]
async fn unsorted_batches_deadlock() {
    let database = Database::new().await;
    let sorted = "ORDER BY r.participant_id) AS s";
    database.take_out("insert_new_rows", sorted, "ORDER BY min(r.sequence_id)) AS s").await;
    let told = opposite_batches(&database).await;
    assert!(told.contains(&Some("40P01".to_owned())), "{told:?}");
}

/// What a batch is told of a row whose key is known when it is enqueued, and forgotten before it is looked up.
async fn forgotten_between_the_looks(database: &Database) -> Result<usize, String> {
    let gate = "PERFORM pg_advisory_xact_lock(77);\n  RETURN QUERY\n    WITH used";
    database.take_out("describe_enqueued", "RETURN QUERY\n    WITH used", gate).await;
    let (producer, upkeep) = (database.connect().await, database.connect().await);
    let rows = [row("p", "old", "1"), row("p", "new", "1")];
    enqueue(&producer, &rows[..1], false).await.unwrap();
    run(&upkeep, "SELECT pg_advisory_lock(77)").await;
    let waiting = pid(&producer).await;
    let call = tokio::spawn(async move { enqueue(&producer, &rows, false).await });
    until_blocked(&upkeep, waiting).await;
    run(&upkeep, "DELETE FROM outbox.payment_outbox_keys WHERE instruction_id = 'old'").await;
    run(&upkeep, "SELECT pg_advisory_unlock(77)").await;
    let told = call.await.unwrap();
    told.map(|rows| rows.len()).map_err(|error| code(&error).to_owned())
}

#[tokio::test]
async fn a_batch_whose_key_is_forgotten_meanwhile_is_to_be_tried_again() {
    let told = forgotten_between_the_looks(&Database::new().await).await;
    assert_eq!(told, Err("40001".to_owned()));
}

#[tokio::test]
async fn with_only_the_keys_that_are_there_such_a_row_would_be_dropped() {
    let database = Database::new().await;
    database.take_out("describe_enqueued", "LEFT JOIN", "JOIN").await;
    assert_eq!(forgotten_between_the_looks(&database).await, Ok(1));
}
