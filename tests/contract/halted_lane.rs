//! On a rail with `on_failed = halt` a lane stops at a FAILED row until an operator decides.

use tokio_postgres::Client;

use crate::calls::{complete, enqueue};
use crate::lane_acts::{
    PARTICIPANT, RAIL, claim_rail, claimable, dismiss, fail_first_of, halt_on_failure, numbers,
    replay, skip,
};
use crate::support::Database;

const STILL_LEASED: &str = "SELECT sequence_id FROM outbox.payment_outbox_pending \
    WHERE rail_type = 'ach' AND lease_token IS NOT NULL ORDER BY 1";

#[derive(Debug, PartialEq)]
struct Halted {
    still_leased: Vec<i64>,
    claimable: Vec<i64>,
}

/// Rows 1 to 3 are leased, 1 fails, 4 is enqueued afterwards.
async fn a_failure_in_flight(database: &Database) -> Halted {
    let client = database.connect().await;
    halt_on_failure(&client).await;
    fail_first_of(&client, 3).await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    let still_leased = numbers(&client, STILL_LEASED).await;
    Halted { still_leased, claimable: claimable(&client).await }
}

#[tokio::test]
async fn a_failed_row_halts_its_lane_and_what_is_behind_it_is_given_back_and_waits() {
    let database = Database::new().await;
    let halted = a_failure_in_flight(&database).await;
    assert_eq!(halted, Halted { still_leased: vec![], claimable: vec![] });
}

#[tokio::test]
async fn without_the_halt_the_rows_behind_a_failure_are_claimed() {
    let database = Database::new().await;
    database.take_out("halt_lanes", "y.on_failed = 'halt'", "false").await;
    let halted = a_failure_in_flight(&database).await;
    assert_eq!(halted, Halted { still_leased: vec![], claimable: vec![2, 3, 4] });
}

#[tokio::test]
async fn without_giving_back_the_rows_behind_a_failure_stay_in_flight() {
    let database = Database::new().await;
    database.take_out("judge_outcomes", "(r.outcome = 'FAILED' AND r.halts)", "false").await;
    let halted = a_failure_in_flight(&database).await;
    assert_eq!(halted.still_leased, [2, 3]);
}

/// The numbers that are delivered one by one after alice's lane on ach has halted: bob's on ach,
/// and alice's own on sepa. Both lanes had rows waiting when it did.
async fn neighbours_of_a_halted_lane(database: &Database) -> (Vec<i64>, Vec<i64>) {
    let client = database.connect().await;
    halt_on_failure(&client).await;
    enqueue(&client, PARTICIPANT, RAIL).await;
    let leased = claim_rail(&client, RAIL, 1).await;
    for _ in 0..2 {
        enqueue(&client, "bob", RAIL).await;
        enqueue(&client, PARTICIPANT, "sepa").await;
    }
    complete(&client, "worker", &leased[0], "FAILED").await.unwrap();
    (one_by_one(&client, RAIL).await, one_by_one(&client, "sepa").await)
}

async fn one_by_one(client: &Client, rail: &str) -> Vec<i64> {
    let mut delivered = Vec::new();
    while let Some(row) = claim_rail(client, rail, 1).await.first() {
        complete(client, "worker", row, "DISPATCHED").await.unwrap();
        delivered.push(row.sequence_id);
    }
    delivered
}

#[tokio::test]
async fn a_halted_lane_holds_up_no_other_participant_and_no_other_rail() {
    let database = Database::new().await;
    assert_eq!(neighbours_of_a_halted_lane(&database).await, (vec![1, 2], vec![2, 3]));
}

#[tokio::test]
async fn without_asking_for_the_participant_a_failure_would_halt_everybody_s_lane() {
    let database = Database::new().await;
    database.take_out("halt_lanes", "l.participant_id = f.participant_id", "true").await;
    assert_eq!(neighbours_of_a_halted_lane(&database).await.0, [1]);
}

#[tokio::test]
async fn without_asking_for_the_rail_a_failure_would_halt_the_participant_s_other_lanes() {
    let database = Database::new().await;
    database.take_out("halt_lanes", "l.rail_type = f.rail_type", "true").await;
    assert_eq!(neighbours_of_a_halted_lane(&database).await.1, [2]);
}

#[derive(Clone, Copy)]
enum Decision {
    Dismiss,
    Skip,
}

/// What can be claimed after the operator has decided about row 1 of 3.
async fn after_deciding(database: &Database, decision: Decision) -> Vec<i64> {
    let client = database.connect().await;
    halt_on_failure(&client).await;
    let failed = fail_first_of(&client, 3).await;
    match decision {
        Decision::Dismiss => dismiss(&client, failed.outbox_id).await.unwrap(),
        Decision::Skip => {
            let skipped = skip(&client, PARTICIPANT, RAIL).await.unwrap();
            assert_eq!(skipped, failed.outbox_id);
        }
    }
    claimable(&client).await
}

#[tokio::test]
async fn a_dismissal_lets_the_halted_lane_go_on() {
    let database = Database::new().await;
    assert_eq!(after_deciding(&database, Decision::Dismiss).await, [2, 3]);
}

#[tokio::test]
async fn a_skip_lets_the_halted_lane_go_on() {
    let database = Database::new().await;
    assert_eq!(after_deciding(&database, Decision::Skip).await, [2, 3]);
}

#[tokio::test]
async fn without_restarting_it_the_lane_stays_where_it_was() {
    for (function, decision) in
        [("dismiss_failed_outbox", Decision::Dismiss), ("skip_outbox_lane_head", Decision::Skip)]
    {
        let database = Database::new().await;
        database.take_out("restart_lane", "l.lane_id = p_lane_id", "false").await;
        let claimed = after_deciding(&database, decision).await;
        assert_eq!(claimed, Vec::<i64>::new(), "{function}");
    }
}

#[tokio::test]
async fn a_skipped_failure_stays_open_and_its_replay_goes_to_the_end() {
    let database = Database::new().await;
    let client = database.connect().await;
    halt_on_failure(&client).await;
    let failed = fail_first_of(&client, 2).await;
    skip(&client, PARTICIPANT, RAIL).await.unwrap();
    let (_, number) = replay(&client, failed.outbox_id).await.unwrap();
    assert_eq!(number, 3);
    assert_eq!(claimable(&client).await, [2, 3]);
}
