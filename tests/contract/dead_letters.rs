//! Rows of the rail dlq, and rows whose outcome the ledger knows already.

use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::{Claimed, claim, complete, complete_batch, enqueue};
use super::steps::{claim_rail, count, refusal, run, set_policies};
use super::support::Database;

/// The states that a dead letter gets for FAILED, and for the 20th to 22nd RETRYABLE.
async fn outcomes_of_a_letter(database: &Database) -> Vec<String> {
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "FAILED").await.unwrap();
    let mut states = Vec::new();
    for n in 0..22 {
        let Some(letter) = claim_rail(&client, "w", 1, "dlq").await.pop() else { break };
        let asked = if n == 0 { "FAILED" } else { "RETRYABLE" };
        states.push(complete(&client, "w", &letter, asked).await.unwrap().1);
    }
    states
}

#[tokio::test]
async fn a_dead_letter_never_fails_itself() {
    assert_eq!(outcomes_of_a_letter(&Database::new().await).await, vec!["RETRYABLE"; 22]);
}

#[tokio::test]
async fn without_the_rule_a_dead_letter_fails() {
    let database = Database::new().await;
    let rule = "WHEN a.state = 'FAILED' AND r.rail_type = 'dlq' THEN";
    database.take_out("judge_outcomes", rule, "WHEN false THEN").await;
    assert_eq!(outcomes_of_a_letter(&database).await[0], "FAILED");

    let database = Database::new().await;
    let rule = "a.state = 'RETRYABLE' AND r.rail_type <> 'dlq' AND";
    database.take_out("judge_outcomes", rule, "a.state = 'RETRYABLE' AND").await;
    assert!(outcomes_of_a_letter(&database).await.contains(&"FAILED".to_owned()));
}

/// The names of a dead letter's headers that tell of the failure, and of the producer's own.
async fn headers_of_a_letter(database: &Database) -> Vec<String> {
    let client = database.connect().await;
    let enqueue = "SELECT outbox.enqueue_payment_outbox('i', 'p', 'k', 'bank', '{}', \
        '{\"DLQ_Reason\": \"forged\", \"dlq_shortened\": \"true\", \"dlqs\": \"mine\"}')";
    run(&client, enqueue).await;
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "FAILED").await.unwrap();
    let names = "SELECT h FROM outbox.payment_outbox_pending AS p, jsonb_object_keys(p.headers) AS h \
        WHERE p.rail_type = 'dlq' ORDER BY h";
    client.query(names, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_producer_cannot_forge_what_a_dead_letter_says_of_its_failure() {
    let times = ["dlq_attempts", "dlq_first_failed_at", "dlq_last_failed_at"];
    let rest = ["dlq_outbox_id", "dlq_rail_type", "dlqs"];
    assert_eq!(headers_of_a_letter(&Database::new().await).await, [times, rest].concat());
}

#[tokio::test]
async fn without_the_look_at_its_headers_a_producer_could_forge_them() {
    let database = Database::new().await;
    let look = "WHERE lower(h.key) NOT LIKE 'dlq\\_%'";
    database.take_out("write_dead_letter", look, "").await;
    let forged = headers_of_a_letter(&database).await;
    for name in ["DLQ_Reason", "dlq_shortened"] {
        assert!(forged.iter().any(|header| header == name), "{forged:?}");
    }
}

/// Where the dead letter of a rail with dlq = ledger is: (pending, delivered in the ledger).
async fn letter_without_broker(database: &Database) -> (i64, i64) {
    let client = database.connect().await;
    set_policies(&client, r#"{"bank": {"dlq": "ledger"}}"#).await;
    enqueue(&client, "p", "bank").await;
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "FAILED").await.unwrap();
    let done = "SELECT count(*) FROM outbox.payment_outbox_attempts \
                WHERE rail_type = 'dlq' AND state = 'DISPATCHED' AND dead_letter_of IS NOT NULL";
    (
        count(&client, "SELECT count(*) FROM outbox.payment_outbox_pending").await,
        count(&client, done).await,
    )
}

#[tokio::test]
async fn without_a_broker_the_dead_letter_is_done_at_once() {
    let database = Database::new().await;
    assert_eq!(letter_without_broker(&database).await, (0, 1));
    let open = "SELECT count(*) FROM outbox.payment_outbox_failures WHERE resolution IS NULL";
    assert_eq!(count(&database.connect().await, open).await, 1, "it stays a failure");
}

#[tokio::test]
async fn without_the_policy_the_dead_letter_waits_for_a_broker() {
    let database = Database::new().await;
    database.take_out("write_dead_letter", "IF p_dlq = 'ledger' THEN", "IF false THEN").await;
    assert_eq!(letter_without_broker(&database).await, (1, 0));
}

/// An outcome that got into the ledger past every function.
async fn write_by_hand(client: &Client, row: &Claimed) {
    const INSERT: &str = "INSERT INTO outbox.payment_outbox_attempts (attempt_id, outbox_id, instruction_id, \
        participant_id, sequence_id, idempotency_key, rail_type, payload, headers, attempt_no, state, \
        claimed_at, completed_at, created_at, worker_id, lease_token) \
        SELECT outbox.uuidv7(), outbox_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type, \
        payload, headers, 1, 'DISPATCHED', claimed_at, claimed_at, created_at, 'hand', lease_token \
        FROM outbox.payment_outbox_pending WHERE outbox_id = $1";
    assert_eq!(client.execute(INSERT, &[&row.outbox_id]).await.unwrap(), 1);
}

/// The second of three rows is terminal already. What each is told, and how many were blocked.
async fn complete_around_a_terminal_row(
    database: &Database,
    state: &str,
) -> (Vec<Option<String>>, i64) {
    let client = database.connect().await;
    for _ in 0..3 {
        enqueue(&client, "p", "bank").await;
    }
    let rows = claim(&client, "w", 10).await;
    write_by_hand(&client, &rows[1]).await;
    let outcomes = [(&rows[0], "DISPATCHED"), (&rows[1], state), (&rows[2], "DISPATCHED")];
    let told = complete_batch(&client, "w", &outcomes).await;
    let told = match told {
        Ok(told) => told.into_iter().map(|told| told.refusal).collect(),
        Err(error) => vec![Some(super::calls::code(&error).to_owned())],
    };
    let blocked = format!(
        "SELECT count(*) FROM outbox.payment_outbox_events \
         WHERE event_type = 'TERMINAL_BLOCKED' AND outbox_ids = ARRAY['{}'::uuid]",
        rows[1].outbox_id
    );
    (told, count(&client, &blocked).await)
}

#[tokio::test]
async fn an_outcome_that_the_ledger_has_is_blocked_without_harm_to_its_neighbours() {
    for state in ["DISPATCHED", "FAILED", "RETRYABLE"] {
        let database = Database::new().await;
        let (told, blocked) = complete_around_a_terminal_row(&database, state).await;
        assert_eq!(told, [None, Some("P7001".to_owned()), None], "{state}");
        assert_eq!(blocked, 1, "{state}");
        let left =
            count(&database.connect().await, "SELECT count(*) FROM outbox.payment_outbox_pending")
                .await;
        assert_eq!(left, 0, "{state}");
    }
}

#[tokio::test]
async fn without_the_look_into_the_ledger_the_index_still_blocks_it() {
    let look = "WHEN s.held AND s.terminal THEN 'blocked'";
    let database = Database::new().await;
    database.take_out("judge_outcomes", look, "WHEN false THEN 'blocked'").await;
    let (told, blocked) = complete_around_a_terminal_row(&database, "DISPATCHED").await;
    assert_eq!((told, blocked), (vec![None, Some("P7001".to_owned()), None], 1));

    // What the index does not see is a retry after the end: that takes the look.
    let database = Database::new().await;
    database.take_out("judge_outcomes", look, "WHEN false THEN 'blocked'").await;
    let (told, blocked) = complete_around_a_terminal_row(&database, "RETRYABLE").await;
    assert_eq!((told[1].as_deref(), blocked), (None, 0));

    let database = Database::new().await;
    database.take_out("judge_outcomes", look, "WHEN false THEN 'blocked'").await;
    let target = "ON CONFLICT (outbox_id) WHERE state IN ('DISPATCHED', 'FAILED') DO NOTHING";
    database.take_out("complete_outbox_batch", target, "").await;
    let (told, _) = complete_around_a_terminal_row(&database, "DISPATCHED").await;
    assert_eq!(told, [Some("23505".to_owned())], "one row fails the batch");
}

/// Two dead letters are leased; a third, whose row failed earlier but committed later, arrives;
/// the first is delivered. What the worker is then told about the second.
async fn letter_arrives_below(database: &Database) -> Option<String> {
    let (client, slow) = (database.connect().await, database.connect().await);
    for rail in ["a", "b", "b"] {
        enqueue(&client, "p", rail).await;
    }
    let early = claim_rail(&client, "w", 1, "a").await.remove(0);
    let later = claim_rail(&client, "w", 10, "b").await;
    // The dlq lane is there already, so that the two transactions need not wait for each other.
    run(&client, "SELECT outbox.pause_outbox_lane('p', 'dlq', 'test', 'test')").await;
    run(&slow, "BEGIN").await;
    complete(&slow, "w", &early, "FAILED").await.unwrap();
    let failed: Vec<(&Claimed, &str)> = later.iter().map(|row| (row, "FAILED")).collect();
    complete_batch(&client, "w", &failed).await.unwrap();
    run(&client, "SELECT outbox.resume_outbox_lane('p', 'dlq', 'test', 'test')").await;
    let letters = claim_rail(&client, "d", 10, "dlq").await;
    assert_eq!(letters.len(), 2);
    run(&slow, "COMMIT").await;
    complete(&client, "d", &letters[0], "DISPATCHED").await.unwrap();
    refusal(complete(&client, "d", &letters[1], "DISPATCHED").await)
}

#[tokio::test]
async fn a_dead_letter_that_arrives_below_a_leased_one_does_not_end_its_lease() {
    assert_eq!(letter_arrives_below(&Database::new().await).await, None);
}

#[tokio::test]
async fn a_lane_judged_by_its_head_alone_would_lose_the_lease() {
    let database = Database::new().await;
    let any = "r.turn_id = t.turn_id AND";
    let head = "r.turn_id = t.turn_id AND r.lane_position = h.lane_position AND";
    database.take_out("settle_lanes", any, head).await;
    assert_eq!(letter_arrives_below(&database).await.as_deref(), Some("P7002"));
}

#[tokio::test]
async fn a_dead_letter_names_the_row_that_failed() {
    let database = Database::new().await;
    let client = database.connect().await;
    let failed: Uuid = enqueue(&client, "p", "bank").await.outbox_id;
    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "FAILED").await.unwrap();
    let letter = claim_rail(&client, "w", 1, "dlq").await.remove(0);
    assert_eq!((letter.rail_type.as_str(), letter.sequence_id), ("dlq", row.sequence_id));
    let named = format!(
        "SELECT count(*) FROM outbox.payment_outbox_pending \
         WHERE dead_letter_of = '{failed}' AND headers ->> 'dlq_outbox_id' = '{failed}'"
    );
    assert_eq!(count(&client, &named).await, 1);
}
