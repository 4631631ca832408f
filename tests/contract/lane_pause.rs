//! A paused lane finishes what is in flight and starts nothing new.

use tokio_postgres::Client;

use crate::calls::{complete, enqueue};
use crate::lane_acts::{
    ACTOR, PARTICIPANT, RAIL, REASON, await_lock_wait, claim_rail, claimable, fail_first_of,
    outcome, pause, pid, replay, resume, set_policies,
};
use crate::support::Database;

#[derive(Debug, PartialEq)]
struct Paused {
    in_flight: String,
    while_paused: Vec<i64>,
    afterwards: Vec<i64>,
}

/// Row 1 of 3 is in flight when its lane is paused.
async fn paused_in_flight(database: &Database) -> Paused {
    let client = database.connect().await;
    for _ in 0..3 {
        enqueue(&client, PARTICIPANT, RAIL).await;
    }
    let leased = claim_rail(&client, RAIL, 1).await;
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    let in_flight = outcome(complete(&client, "worker", &leased[0], "DISPATCHED").await);
    let while_paused = claimable(&client).await;
    resume(&client, PARTICIPANT, RAIL).await.unwrap();
    Paused { in_flight, while_paused, afterwards: claimable(&client).await }
}

#[tokio::test]
async fn rows_in_flight_finish_in_a_paused_lane_and_the_others_wait_for_its_resumption() {
    let database = Database::new().await;
    let expected =
        Paused { in_flight: "done".to_owned(), while_paused: vec![], afterwards: vec![2, 3] };
    assert_eq!(paused_in_flight(&database).await, expected);
}

#[tokio::test]
async fn without_sparing_the_leased_turn_a_row_in_flight_could_not_be_recorded() {
    let database = Database::new().await;
    database.take_out("pause_outbox_lane", " AND t.worker_id IS NULL", "").await;
    assert_eq!(paused_in_flight(&database).await.in_flight, "P7002");
}

#[tokio::test]
async fn without_asking_for_the_pause_the_next_rows_would_follow_the_one_in_flight() {
    let database = Database::new().await;
    database.take_out("settle_lanes", "l.paused_at IS NULL", "true").await;
    assert_eq!(paused_in_flight(&database).await.while_paused, [2, 3]);
}

#[tokio::test]
async fn without_a_restart_a_resumed_lane_would_stand_still() {
    let database = Database::new().await;
    database.take_out("restart_lane", "l.lane_id = p_lane_id", "false").await;
    assert_eq!(paused_in_flight(&database).await.afterwards, Vec::<i64>::new());
}

/// What can be claimed from a lane that is paused while its rows wait.
async fn paused_while_waiting(database: &Database) -> Vec<i64> {
    let client = database.connect().await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    enqueue(&client, PARTICIPANT, RAIL).await;
    claimable(&client).await
}

#[tokio::test]
async fn nothing_is_claimed_from_a_paused_lane() {
    let database = Database::new().await;
    assert_eq!(paused_while_waiting(&database).await, Vec::<i64>::new());
}

#[tokio::test]
async fn without_taking_its_turn_away_a_paused_lane_would_be_claimed() {
    let database = Database::new().await;
    database.take_out("pause_outbox_lane", "t.worker_id IS NULL", "false").await;
    assert_eq!(paused_while_waiting(&database).await, [1, 2]);
}

/// Pauses a lane that has no work, enqueues, and resumes: what is claimable before and after.
async fn paused_without_work(database: &Database, forget_the_lane: bool) -> (Vec<i64>, Vec<i64>) {
    let client = database.connect().await;
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    if forget_the_lane {
        client.execute("DELETE FROM outbox.payment_outbox_lanes", &[]).await.unwrap();
    }
    enqueue(&client, PARTICIPANT, RAIL).await;
    let before = claimable(&client).await;
    let _ = resume(&client, PARTICIPANT, RAIL).await;
    (before, claimable(&client).await)
}

#[tokio::test]
async fn a_lane_without_work_can_be_paused_and_what_is_enqueued_then_waits() {
    let database = Database::new().await;
    assert_eq!(paused_without_work(&database, false).await, (vec![], vec![1]));
}

#[tokio::test]
async fn without_keeping_the_empty_lane_its_pause_would_be_forgotten() {
    let database = Database::new().await;
    assert_eq!(paused_without_work(&database, true).await, (vec![1], vec![]));
}

/// What ben is told who pauses alice's lane after ana, and who is on record then.
async fn paused_twice(database: &Database) -> (String, String) {
    let client = database.connect().await;
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    let again = "SELECT outbox.pause_outbox_lane('alice', 'ach', 'ben', 'another reason')";
    let second = outcome(client.execute(again, &[]).await);
    let by = "SELECT paused_by FROM outbox.payment_outbox_lanes";
    (second, client.query_one(by, &[]).await.unwrap().get(0))
}

#[tokio::test]
async fn a_paused_lane_is_not_paused_again() {
    let database = Database::new().await;
    assert_eq!(paused_twice(&database).await, ("P7009".to_owned(), ACTOR.to_owned()));
}

#[tokio::test]
async fn without_the_check_the_second_pause_would_hide_the_first() {
    let database = Database::new().await;
    database.take_out("pause_outbox_lane", "v_lane.paused_at IS NOT NULL", "false").await;
    assert_eq!(paused_twice(&database).await, ("done".to_owned(), "ben".to_owned()));
}

async fn resumed_without_pause(database: &Database) -> String {
    let client = database.connect().await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    outcome(resume(&client, PARTICIPANT, RAIL).await)
}

#[tokio::test]
async fn a_lane_that_is_not_paused_is_not_resumed() {
    let database = Database::new().await;
    assert_eq!(resumed_without_pause(&database).await, "P7009");
}

#[tokio::test]
async fn without_the_check_resuming_a_running_lane_would_pass_for_an_act() {
    let database = Database::new().await;
    database.take_out("resume_outbox_lane", "NOT v_paused", "false").await;
    assert_eq!(resumed_without_pause(&database).await, "done");
}

#[tokio::test]
async fn resuming_where_there_is_no_lane_is_refused() {
    let database = Database::new().await;
    let client = database.connect().await;
    assert_eq!(outcome(resume(&client, PARTICIPANT, RAIL).await), "P7008");
}

#[tokio::test]
async fn a_pause_on_a_rail_without_order_also_stops_rows_that_wait_on_their_own() {
    let database = Database::new().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"ach": {"ordering": "none"}}"#).await.unwrap();
    enqueue(&client, PARTICIPANT, RAIL).await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    let leased = claim_rail(&client, RAIL, 1).await;
    complete(&client, "worker", &leased[0], "RETRYABLE").await.unwrap();
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    assert_eq!(claimable(&client).await, Vec::<i64>::new());
}

/// Whether a worker can record row 2 of the lane, within a second, while a producer of the
/// participant holds its transaction open and an operator replays row 1.
async fn completion_beside_a_replay(database: &Database) -> String {
    let (producer, operator) = (database.connect().await, database.connect().await);
    let worker = database.connect().await;
    let failed = fail_first_of(&worker, 1).await.outbox_id;
    enqueue(&worker, PARTICIPANT, RAIL).await;
    let leased = claim_rail(&worker, RAIL, 1).await;
    let operator_pid = pid(&operator).await;

    producer.batch_execute("BEGIN").await.unwrap();
    enqueue(&producer, PARTICIPANT, RAIL).await;
    let replayed = tokio::spawn(async move { replay(&operator, failed).await });
    await_lock_wait(&worker, operator_pid).await;
    worker.batch_execute("SET lock_timeout = '1s'").await.unwrap();
    let told = outcome(complete(&worker, "worker", &leased[0], "DISPATCHED").await);

    producer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(outcome(replayed.await.unwrap()), "done");
    told
}

#[tokio::test]
async fn a_replay_that_waits_for_a_producer_does_not_hold_up_completions_of_the_lane() {
    let database = Database::new().await;
    assert_eq!(completion_beside_a_replay(&database).await, "done");
}

#[tokio::test]
async fn with_the_lane_locked_first_a_replay_would_hold_up_completions() {
    let database = Database::new().await;
    let number = "v_seq := outbox.number_for_replay(p_outbox_id);";
    let lane = "v_failed := outbox.open_failure(p_outbox_id);";
    let number_first = format!("{number}\n  {lane}");
    database.take_out("replay_failed_outbox", &number_first, &format!("{lane}\n  {number}")).await;
    assert_eq!(completion_beside_a_replay(&database).await, "55P03");
}

/// Who paused a lane and why, as the console lists it.
async fn paused_lanes(client: &Client) -> Vec<(String, String)> {
    let query = "SELECT paused_by, paused_reason FROM outbox.payment_outbox_lanes \
        WHERE paused_at IS NOT NULL";
    let rows = client.query(query, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn a_paused_lane_says_who_paused_it_and_why_until_it_is_resumed() {
    let database = Database::new().await;
    let client = database.connect().await;
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    assert_eq!(paused_lanes(&client).await, [(ACTOR.to_owned(), REASON.to_owned())]);
    resume(&client, PARTICIPANT, RAIL).await.unwrap();
    assert_eq!(paused_lanes(&client).await, []);
}
