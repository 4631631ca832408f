//! A failure is resolved once, by somebody, for a reason; a row that did not fail never is.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::calls::{complete, enqueue};
use crate::lane_acts::{
    ACTOR, PARTICIPANT, RAIL, REASON, await_lock_wait, claim_rail, dismiss, dismiss_as,
    fail_first_of, outcome, pause, pid, replay, resume, skip,
};
use crate::support::Database;

async fn resolved_by(client: &Client) -> String {
    let query = "SELECT resolved_by FROM outbox.payment_outbox_failures";
    client.query_one(query, &[]).await.unwrap().get(0)
}

/// What the second operator is told, and who is on record.
async fn dismissed_twice(database: &Database) -> (String, String) {
    let client = database.connect().await;
    let failed = fail_first_of(&client, 1).await.outbox_id;
    dismiss(&client, failed).await.unwrap();
    let second = outcome(dismiss_as(&client, failed, "ben").await);
    (second, resolved_by(&client).await)
}

fn told(code: &str, who: &str) -> (String, String) {
    (code.to_owned(), who.to_owned())
}

#[tokio::test]
async fn a_failure_is_resolved_once() {
    let database = Database::new().await;
    assert_eq!(dismissed_twice(&database).await, told("P7011", ACTOR));
}

#[tokio::test]
async fn without_the_check_a_second_operator_would_overwrite_the_first() {
    let database = Database::new().await;
    database.take_out("open_failure", "v_failure.resolution IS NOT NULL", "false").await;
    assert_eq!(dismissed_twice(&database).await, told("done", "ben"));
}

#[tokio::test]
async fn no_resolution_follows_another() {
    let database = Database::new().await;
    let client = database.connect().await;
    let replayed = fail_first_of(&client, 1).await.outbox_id;
    replay(&client, replayed).await.unwrap();
    assert_eq!(outcome(replay(&client, replayed).await), "P7011");
    assert_eq!(outcome(dismiss(&client, replayed).await), "P7011");

    let claimed = claim_rail(&client, RAIL, 1).await;
    complete(&client, "worker", &claimed[0], "FAILED").await.unwrap();
    dismiss(&client, claimed[0].outbox_id).await.unwrap();
    assert_eq!(outcome(replay(&client, claimed[0].outbox_id).await), "P7011");
}

/// Two operators dismiss at the same time; the lane is gone, so only the failure is locked.
async fn dismissed_at_the_same_time(database: &Database) -> (String, String) {
    let one = database.connect().await;
    let other = database.connect().await;
    let failed = fail_first_of(&one, 1).await.outbox_id;
    let other_pid = pid(&other).await;

    one.batch_execute("BEGIN").await.unwrap();
    dismiss(&one, failed).await.unwrap();
    let second = tokio::spawn(async move { dismiss_as(&other, failed, "ben").await });
    await_lock_wait(&one, other_pid).await;
    one.batch_execute("COMMIT").await.unwrap();
    let second = outcome(second.await.unwrap());
    (second, resolved_by(&one).await)
}

#[tokio::test]
async fn of_two_operators_at_the_same_time_one_resolves_the_failure() {
    let database = Database::new().await;
    assert_eq!(dismissed_at_the_same_time(&database).await, told("P7011", ACTOR));
}

#[tokio::test]
async fn without_the_failure_s_lock_both_would_resolve_it() {
    let database = Database::new().await;
    let unlocked = "WHERE f.outbox_id = p_outbox_id;";
    database
        .take_out("open_failure", "WHERE f.outbox_id = p_outbox_id FOR UPDATE;", unlocked)
        .await;
    assert_eq!(dismissed_at_the_same_time(&database).await, told("done", "ben"));
}

/// What an operator is told about a pending row, a delivered one and one that never was.
async fn resolving_what_did_not_fail(database: &Database) -> Vec<String> {
    let client = database.connect().await;
    let delivered = enqueue(&client, PARTICIPANT, RAIL).await.outbox_id;
    let claimed = claim_rail(&client, RAIL, 1).await;
    complete(&client, "worker", &claimed[0], "DISPATCHED").await.unwrap();
    let pending = enqueue(&client, PARTICIPANT, RAIL).await.outbox_id;
    let mut told = Vec::new();
    for id in [pending, delivered, Uuid::new_v4()] {
        told.push(outcome(dismiss(&client, id).await));
        told.push(outcome(replay(&client, id).await));
    }
    told
}

#[tokio::test]
async fn a_row_that_did_not_fail_is_neither_dismissed_nor_replayed() {
    let database = Database::new().await;
    assert_eq!(resolving_what_did_not_fail(&database).await, ["P7010"; 6]);
}

#[tokio::test]
async fn without_the_check_a_dismissal_of_nothing_would_pass() {
    let database = Database::new().await;
    database.take_out("open_failure", "NOT FOUND", "false").await;
    let told = resolving_what_did_not_fail(&database).await;
    assert_eq!(told[0], "done", "{told:?}");
}

/// Type, actor and reason of what operators did: every act there is.
async fn every_act(database: &Database) -> Vec<(String, String, Option<String>)> {
    const EVENTS: &str = "SELECT event_type, actor, reason FROM outbox.payment_outbox_events \
        WHERE event_type NOT IN ('LEASE_CLAIMED', 'ATTEMPT_COMPLETED') ORDER BY event_id";
    let client = database.connect().await;
    let failed = fail_first_of(&client, 1).await.outbox_id;
    replay(&client, failed).await.unwrap();
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    let skipped = skip(&client, PARTICIPANT, RAIL).await.unwrap();
    dismiss(&client, skipped).await.unwrap();
    resume(&client, PARTICIPANT, RAIL).await.unwrap();
    let rows = client.query(EVENTS, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

#[tokio::test]
async fn every_act_of_an_operator_leaves_an_event_with_who_and_why() {
    let database = Database::new().await;
    let expected =
        ["FAILED_REPLAYED", "LANE_PAUSED", "LANE_HEAD_SKIPPED", "FAILED_DISMISSED", "LANE_RESUMED"]
            .map(|what| (what.to_owned(), ACTOR.to_owned(), Some(REASON.to_owned())));
    assert_eq!(every_act(&database).await, expected);
}

#[tokio::test]
async fn without_who_and_why_the_events_would_name_nobody() {
    let database = Database::new().await;
    database.take_out("log_event", "p_actor, p_reason,", "'nobody', NULL,").await;
    let events = every_act(&database).await;
    assert!(events.iter().all(|(_, who, why)| who == "nobody" && why.is_none()), "{events:?}");
}

/// What each act on `failed` and its lane answers to the actor and reason given.
async fn acts_by(
    client: &Client,
    failed: Uuid,
    actor: Option<&str>,
    reason: Option<&str>,
) -> Vec<String> {
    const ACTS: [&str; 5] = [
        "SELECT outbox.pause_outbox_lane('alice', 'ach', $2, $3) WHERE $1 <> ''",
        "SELECT outbox.resume_outbox_lane('alice', 'ach', $2, $3) WHERE $1 <> ''",
        "SELECT outbox.skip_outbox_lane_head('alice', 'ach', $2, $3) WHERE $1 <> ''",
        "SELECT outbox.replay_failed_outbox($1::text::uuid, $2, $3)",
        "SELECT outbox.dismiss_failed_outbox($1::text::uuid, $2, $3)",
    ];
    let failed = failed.to_string();
    let mut told = Vec::new();
    for act in ACTS {
        told.push(outcome(client.execute(act, &[&failed, &actor, &reason]).await));
    }
    told
}

#[tokio::test]
async fn no_act_is_done_without_saying_who_and_why() {
    let database = Database::new().await;
    let client = database.connect().await;
    let failed = fail_first_of(&client, 2).await.outbox_id;
    for nobody in [None, Some(""), Some("  ")] {
        assert_eq!(acts_by(&client, failed, nobody, Some(REASON)).await, ["P7113"; 5]);
        assert_eq!(acts_by(&client, failed, Some(ACTOR), nobody).await, ["P7114"; 5]);
    }
}

#[tokio::test]
async fn without_the_check_an_act_could_be_nobody_s() {
    let database = Database::new().await;
    database.take_out("check_actor", "btrim(p_actor) = ''", "false").await;
    let client = database.connect().await;
    let failed = fail_first_of(&client, 2).await.outbox_id;
    assert_eq!(acts_by(&client, failed, Some(""), Some(REASON)).await[0], "done");
}
