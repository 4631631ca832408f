//! Skipping the head of a lane: the same way out of pending as any other FAILED outcome.

use crate::calls::{complete, enqueue};
use crate::lane_acts::{
    PARTICIPANT, RAIL, REASON, claim_rail, claimable, halt_on_failure, numbers, outcome, pause,
    resume, skip,
};
use crate::support::Database;

/// What the operator is told about a leased head, and the worker about its outcome.
async fn skipping_a_leased_head(database: &Database) -> (String, String) {
    let client = database.connect().await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    let leased = claim_rail(&client, RAIL, 1).await;
    let operator = outcome(skip(&client, PARTICIPANT, RAIL).await);
    let worker = outcome(complete(&client, "worker", &leased[0], "DISPATCHED").await);
    (operator, worker)
}

#[tokio::test]
async fn a_leased_head_is_not_skipped_because_it_may_be_on_its_way() {
    let database = Database::new().await;
    let told = skipping_a_leased_head(&database).await;
    assert_eq!(told, ("P7007".to_owned(), "done".to_owned()));
}

#[tokio::test]
async fn without_the_refusal_a_row_that_was_sent_would_be_on_record_as_skipped() {
    let database = Database::new().await;
    database.take_out("skip_outbox_lane_head", "t.worker_id IS NOT NULL", "false").await;
    let told = skipping_a_leased_head(&database).await;
    assert_eq!(told, ("done".to_owned(), "P7001".to_owned()));
}

#[derive(Clone, Copy, Debug)]
enum Head {
    Due,
    Delayed,
    Paused,
}

const HEADS: [Head; 3] = [Head::Due, Head::Delayed, Head::Paused];

#[derive(Debug, PartialEq)]
struct Skipped {
    ledger: Vec<(String, Option<String>, Option<String>)>,
    dead_letters: Vec<i64>,
    goes_on_with: Vec<i64>,
}

/// Skips row 1 of 2 on a rail that halts.
async fn skipping(database: &Database, head: Head) -> Skipped {
    const DELAYED: &str = "SELECT outbox_id FROM outbox.enqueue_payment_outbox(\
        'order', 'alice', 'key', 'ach', '{}', p_not_before => now() + interval '1 hour')";
    const LEDGER: &str = "SELECT state::text, error_code, error_message \
        FROM outbox.payment_outbox_attempts WHERE outbox_id = $1";
    const LETTERS: &str = "SELECT sequence_id FROM outbox.payment_outbox_pending \
        WHERE dead_letter_of IS NOT NULL";
    let client = database.connect().await;
    halt_on_failure(&client).await;
    let first = match head {
        Head::Delayed => client.query_one(DELAYED, &[]).await.unwrap().get(0),
        Head::Due | Head::Paused => enqueue(&client, PARTICIPANT, RAIL).await.outbox_id,
    };
    enqueue(&client, PARTICIPANT, RAIL).await;
    if matches!(head, Head::Paused) {
        pause(&client, PARTICIPANT, RAIL).await.unwrap();
    }
    assert_eq!(skip(&client, PARTICIPANT, RAIL).await.unwrap(), first);
    if matches!(head, Head::Paused) {
        assert!(claimable(&client).await.is_empty(), "a paused lane stays paused");
        resume(&client, PARTICIPANT, RAIL).await.unwrap();
    }
    let ledger = client.query(LEDGER, &[&first]).await.unwrap();
    Skipped {
        ledger: ledger.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect(),
        dead_letters: numbers(&client, LETTERS).await,
        goes_on_with: claimable(&client).await,
    }
}

fn skipped_by_operator() -> Skipped {
    let code = Some("SKIPPED_BY_OPERATOR".to_owned());
    Skipped {
        ledger: vec![("FAILED".to_owned(), code, Some(REASON.to_owned()))],
        dead_letters: vec![1],
        goes_on_with: vec![2],
    }
}

#[tokio::test]
async fn a_skipped_head_is_on_record_as_failed_with_a_dead_letter_and_the_lane_goes_on() {
    for head in HEADS {
        let database = Database::new().await;
        assert_eq!(skipping(&database, head).await, skipped_by_operator(), "{head:?}");
    }
}

#[tokio::test]
async fn without_lifting_the_halt_the_lane_would_wait_for_the_row_just_skipped() {
    for head in HEADS {
        let database = Database::new().await;
        let guard = "l.lane_id = v_lane.lane_id AND l.halted_by IS NOT NULL";
        database.take_out("skip_outbox_lane_head", guard, "false").await;
        let expected = Skipped { goes_on_with: vec![], ..skipped_by_operator() };
        assert_eq!(skipping(&database, head).await, expected, "{head:?}");
    }
}

#[tokio::test]
async fn without_a_burial_a_skipped_head_would_leave_no_dead_letter() {
    let database = Database::new().await;
    database.take_out("bury_failed", "v_failed IS NULL", "true").await;
    let skipped = skipping(&database, Head::Due).await;
    assert_eq!(skipped, Skipped { dead_letters: vec![], ..skipped_by_operator() });
}

/// What an operator is told where there is nothing to skip.
async fn skipping_nothing(database: &Database) -> (String, String) {
    let client = database.connect().await;
    let no_lane = outcome(skip(&client, PARTICIPANT, RAIL).await);
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    (no_lane, outcome(skip(&client, PARTICIPANT, RAIL).await))
}

#[tokio::test]
async fn where_there_is_no_lane_or_no_row_the_operator_is_told_so() {
    let database = Database::new().await;
    let told = skipping_nothing(&database).await;
    assert_eq!(told, ("P7008".to_owned(), "P7008".to_owned()));
}

#[tokio::test]
async fn without_the_check_skipping_nothing_would_not_be_named_as_such() {
    let database = Database::new().await;
    database.take_out("skip_outbox_lane_head", "IF NOT FOUND", "IF false").await;
    assert_ne!(skipping_nothing(&database).await.1, "P7008");
}

/// What an operator is told who tries to skip an undelivered dead letter.
async fn skipping_a_dead_letter(database: &Database) -> String {
    let client = database.connect().await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    skip(&client, PARTICIPANT, RAIL).await.unwrap();
    outcome(skip(&client, PARTICIPANT, "dlq").await)
}

#[tokio::test]
async fn a_dead_letter_is_never_skipped() {
    let database = Database::new().await;
    assert_eq!(skipping_a_dead_letter(&database).await, "P7104");
}

#[tokio::test]
async fn without_the_refusal_a_skip_would_reach_for_a_dead_letter() {
    let database = Database::new().await;
    database.take_out("skip_outbox_lane_head", "p_rail_type = 'dlq'", "false").await;
    assert_ne!(skipping_a_dead_letter(&database).await, "P7104");
}

#[tokio::test]
async fn a_long_name_with_letters_of_two_bytes_can_skip_as_it_can_pause() {
    const SKIP: &str =
        "SELECT outbox.skip_outbox_lane_head('alice', 'ach', repeat('ä', 100), 'a test')";
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    assert_eq!(outcome(client.execute(SKIP, &[]).await), "done");
}
