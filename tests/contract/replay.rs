//! A FAILED row comes back as a new row, before what waits behind it where the lane has halted.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::calls::{complete, enqueue, enqueue_key};
use crate::lane_acts::{
    PARTICIPANT, RAIL, await_lock_wait, claim_rail, claimable, fail_first_of, fail_next,
    halt_on_failure, numbers, outcome, pid, replay, skip,
};
use crate::support::Database;

const NEW_NUMBER: &str =
    "RETURN outbox.bump_participant_outbox_seq(v_failure.participant_id, v_failure.tenant_id)";
const CHANGED_MEANWHILE: &str = "v_failed.halted_lane <> (v_seq = v_was.sequence_id)";

/// Row 1 of 3 fails and is replayed: its new number, and the numbers in the order of the claim.
async fn replayed(database: &Database, halts: bool) -> (i64, Vec<i64>) {
    let client = database.connect().await;
    if halts {
        halt_on_failure(&client).await;
    }
    for _ in 0..3 {
        enqueue(&client, PARTICIPANT, RAIL).await;
    }
    let failed = fail_next(&client, 1).await;
    let (id, number) = replay(&client, failed.outbox_id).await.unwrap();
    assert_ne!(id, failed.outbox_id);
    (number, claimable(&client).await)
}

#[tokio::test]
async fn in_a_halted_lane_a_replay_keeps_its_number_and_goes_before_what_waits() {
    let database = Database::new().await;
    assert_eq!(replayed(&database, true).await, (1, vec![1, 2, 3]));
}

#[tokio::test]
async fn without_its_own_number_a_replay_does_not_go_first() {
    let database = Database::new().await;
    database.take_out("number_for_replay", "l.halted_by = p_outbox_id", "false").await;
    database.take_out("replay_failed_outbox", CHANGED_MEANWHILE, "false").await;
    let (number, order) = replayed(&database, true).await;
    assert_eq!(number, 4);
    assert_ne!(order.first(), Some(&1), "{order:?}");
}

#[tokio::test]
async fn elsewhere_a_replay_takes_a_new_number_at_the_end() {
    let database = Database::new().await;
    assert_eq!(replayed(&database, false).await, (4, vec![2, 3, 4]));
}

#[tokio::test]
async fn without_a_new_number_a_replay_elsewhere_would_stand_before_the_lane_s_head() {
    let database = Database::new().await;
    database.take_out("number_for_replay", NEW_NUMBER, "RETURN v_failure.sequence_id").await;
    database.take_out("replay_failed_outbox", CHANGED_MEANWHILE, "false").await;
    assert_eq!(replayed(&database, false).await.0, 1);
}

#[tokio::test]
async fn a_replay_is_the_failed_row_under_a_new_id_that_names_it() {
    const SAME: &str = "SELECT f.instruction_id = r.instruction_id AND f.idempotency_key = r.idempotency_key \
        AND f.payload = r.payload AND f.headers = r.headers AND f.tenant_id IS NOT DISTINCT FROM r.tenant_id, r.replay_of \
        FROM outbox.payment_outbox_attempts AS f, outbox.payment_outbox_pending AS r \
        WHERE f.outbox_id = $1 AND r.outbox_id = $2";
    let database = Database::new().await;
    let client = database.connect().await;
    let failed = fail_first_of(&client, 1).await;
    let (id, _) = replay(&client, failed.outbox_id).await.unwrap();
    let row = client.query_one(SAME, &[&failed.outbox_id, &id]).await.unwrap();
    assert!(row.get::<_, bool>(0));
    assert_eq!(row.get::<_, Uuid>(1), failed.outbox_id);

    let claimed = claim_rail(&client, RAIL, 1).await;
    complete(&client, "worker", &claimed[0], "DISPATCHED").await.unwrap();
    let ledger = "SELECT replay_of FROM outbox.payment_outbox_attempts WHERE outbox_id = $1";
    let named: Uuid = client.query_one(ledger, &[&id]).await.unwrap().get(0);
    assert_eq!(named, failed.outbox_id);
}

/// An operator's replay read that its row halts the lane; before it has the lane's lock, another
/// operator lets the lane go on. Returns the refusal, or the number that the replay took.
async fn replay_while_the_lane_is_skipped(database: &Database) -> String {
    let one = database.connect().await;
    let other = database.connect().await;
    halt_on_failure(&one).await;
    let failed = fail_first_of(&one, 3).await;
    let other_pid = pid(&other).await;

    one.batch_execute("BEGIN").await.unwrap();
    skip(&one, PARTICIPANT, RAIL).await.unwrap();
    let second = tokio::spawn(async move { replay(&other, failed.outbox_id).await });
    await_lock_wait(&one, other_pid).await;
    one.batch_execute("COMMIT").await.unwrap();
    match second.await.unwrap() {
        Ok((_, number)) => number.to_string(),
        refused => outcome(refused),
    }
}

#[tokio::test]
async fn a_replay_whose_lane_went_on_meanwhile_is_refused_and_can_be_tried_again() {
    let database = Database::new().await;
    assert_eq!(replay_while_the_lane_is_skipped(&database).await, "40001");
    let client = database.connect().await;
    let failed: Uuid = client
        .query_one("SELECT outbox_id FROM outbox.payment_outbox_failures", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(replay(&client, failed).await.unwrap().1, 4);
}

#[tokio::test]
async fn without_looking_again_a_replay_keeps_a_number_that_the_lane_has_passed() {
    let database = Database::new().await;
    database.take_out("replay_failed_outbox", CHANGED_MEANWHILE, "false").await;
    assert_eq!(replay_while_the_lane_is_skipped(&database).await, "1");
}

#[derive(Debug, PartialEq)]
struct FailedTwice {
    second_failure: String,
    dead_letters: Vec<i64>,
}

/// The replay of row 1 fails as well, while the first dead letter is not delivered yet.
async fn a_replay_that_fails(client: &Client) -> FailedTwice {
    const LETTERS: &str = "SELECT sequence_id FROM outbox.payment_outbox_pending \
        WHERE dead_letter_of IS NOT NULL";
    halt_on_failure(client).await;
    let failed = fail_first_of(client, 2).await;
    replay(client, failed.outbox_id).await.unwrap();
    let again = claim_rail(client, RAIL, 1).await;
    let second_failure = outcome(complete(client, "worker", &again[0], "FAILED").await);
    FailedTwice { second_failure, dead_letters: numbers(client, LETTERS).await }
}

#[tokio::test]
async fn a_replay_that_fails_again_is_a_second_dead_letter_and_can_be_replayed_again() {
    let database = Database::new().await;
    let client = database.connect().await;
    let twice = a_replay_that_fails(&client).await;
    let expected = FailedTwice { second_failure: "done".to_owned(), dead_letters: vec![1, 1] };
    assert_eq!(twice, expected);

    let open = "SELECT outbox_id FROM outbox.payment_outbox_failures WHERE resolution IS NULL";
    let failed: Uuid = client.query_one(open, &[]).await.unwrap().get(0);
    assert_eq!(replay(&client, failed).await.unwrap().1, 1);
    assert_eq!(claimable(&client).await, [1, 2]);
    assert_eq!(claim_rail(&client, "dlq", 10).await.len(), 2);
}

#[tokio::test]
async fn with_one_dead_letter_for_each_number_the_second_failure_could_not_be_recorded() {
    let database = Database::new().await;
    let client = database.connect().await;
    let one_each = "DROP INDEX outbox.payment_outbox_pending_dead_letters; \
        CREATE UNIQUE INDEX one_each ON outbox.payment_outbox_pending (participant_id, sequence_id) \
        WHERE dead_letter_of IS NOT NULL";
    client.batch_execute(one_each).await.unwrap();
    assert_eq!(a_replay_that_fails(&client).await.second_failure, "23505");
}

/// Whether the key of a replayed row finds the row that was enqueued with it.
async fn key_of_a_replayed_row(client: &Client, forget_the_key: bool) -> bool {
    let original = enqueue_key(client, "order", PARTICIPANT, "key", RAIL).await.unwrap();
    let failed = fail_next(client, 1).await;
    replay(client, failed.outbox_id).await.unwrap();
    if forget_the_key {
        client.execute("DELETE FROM outbox.payment_outbox_keys", &[]).await.unwrap();
    }
    let again = enqueue_key(client, "order", PARTICIPANT, "key", RAIL).await.unwrap();
    !again.is_new && again.outbox_id == original.outbox_id && again.sequence_id == 1
}

#[tokio::test]
async fn enqueueing_the_key_of_a_replayed_row_returns_the_original_row() {
    let database = Database::new().await;
    assert!(key_of_a_replayed_row(&database.connect().await, false).await);
}

#[tokio::test]
async fn without_its_entry_among_the_keys_a_replayed_row_would_be_enqueued_anew() {
    let database = Database::new().await;
    assert!(!key_of_a_replayed_row(&database.connect().await, true).await);
}
