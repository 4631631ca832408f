//! What operators may not say, and how they are told.

use crate::calls::{claim, complete, enqueue};
use crate::refusals::{Call, Case, assert_needs_read_committed, assert_refused, let_through};
use crate::support::Database;

const WHO: (&str, &str) = ("p_actor", "'ops'");
const WHY: (&str, &str) = ("p_reason", "'because'");

const UNSIGNED: [Case; 8] = [
    ("p_actor", "NULL", "P7113", "p_actor is null"),
    ("p_actor", "''", "P7113", "p_actor is empty"),
    ("p_actor", "'  '", "P7113", "p_actor is empty"),
    ("p_actor", "repeat('é', 200)", "P7113", "p_actor has 400 bytes"),
    ("p_reason", "NULL", "P7114", "p_reason is null"),
    ("p_reason", "''", "P7114", "p_reason is empty"),
    ("p_reason", "' '", "P7114", "p_reason is empty"),
    ("p_reason", "repeat('x', 2001)", "P7114", "p_reason has 2001 bytes"),
];

const BAD_LANES: [Case; 9] = [
    ("p_participant_id", "NULL", "P7101", "p_participant_id is null"),
    ("p_participant_id", "''", "P7101", "p_participant_id is empty"),
    ("p_participant_id", "repeat('x', 513)", "P7102", "p_participant_id"),
    ("p_participant_id", "E'a\\nb'", "P7102", "p_participant_id"),
    ("p_rail_type", "NULL", "P7103", "p_rail_type null"),
    ("p_rail_type", "''", "P7103", "p_rail_type ''"),
    ("p_rail_type", "'ACH'", "P7103", "p_rail_type 'ACH'"),
    ("p_rail_type", "'a b'", "P7103", "p_rail_type"),
    ("p_rail_type", "repeat('a', 64)", "P7103", "p_rail_type"),
];

const NO_LANES: [Case; 4] = [
    ("p_participant_id", "NULL", "P7008", "participant_id null"),
    ("p_participant_id", "'nobody'", "P7008", "participant_id 'nobody'"),
    ("p_rail_type", "NULL", "P7008", "rail_type null"),
    ("p_rail_type", "'wire'", "P7008", "rail_type 'wire'"),
];

const NO_FAILURES: [Case; 3] = [
    ("p_outbox_id", "NULL", "P7010", "p_outbox_id null"),
    ("p_outbox_id", "'01900000-0000-7000-8000-000000000000'", "P7010", "p_outbox_id 01900000"),
    ("p_outbox_id", "'x'", "22P02", "uuid"),
];

fn lane(function: &'static str, participant: &str) -> Call {
    Call::new(function, &[("p_participant_id", participant), ("p_rail_type", "'ach'"), WHO, WHY])
}

#[tokio::test]
async fn a_bad_act_on_a_lane_is_refused_by_name() {
    let database = Database::new().await;
    let witness = database.connect().await;
    enqueue(&witness, "alice", "ach").await;
    let operator = database.connect_as("symphony_operator").await;
    for (function, bad) in [
        ("pause_outbox_lane", &BAD_LANES[..]),
        ("resume_outbox_lane", &NO_LANES[..]),
        ("skip_outbox_lane_head", &NO_LANES[..]),
    ] {
        let call = lane(function, "'alice'");
        assert_needs_read_committed(&operator, &call).await;
        assert_refused(&witness, &operator, &call, &[&UNSIGNED, bad].concat()).await;
    }
}

#[tokio::test]
async fn a_bad_act_on_a_failure_is_refused_by_name() {
    let database = Database::new().await;
    let witness = database.connect().await;
    let operator = database.connect_as("symphony_operator").await;
    for (function, participant) in
        [("replay_failed_outbox", "alice"), ("dismiss_failed_outbox", "bob")]
    {
        let id = enqueue(&witness, participant, "ach").await.outbox_id;
        for row in claim(&witness, "worker", 10).await {
            complete(&witness, "worker", &row, "FAILED").await.unwrap();
        }
        let call = Call::new(function, &[("p_outbox_id", &format!("'{id}'")), WHO, WHY]);
        assert_needs_read_committed(&operator, &call).await;
        assert_refused(&witness, &operator, &call, &[&UNSIGNED[..], &NO_FAILURES].concat()).await;
    }
}

#[tokio::test]
async fn the_longest_names_of_operators_are_accepted() {
    let database = Database::new().await;
    enqueue(&database.connect().await, "alice", "ach").await;
    let operator = database.connect_as("symphony_operator").await;
    for function in ["pause_outbox_lane", "resume_outbox_lane", "skip_outbox_lane_head"] {
        let call = lane(function, "'alice'").sql("p_actor", "repeat('é', 100)");
        operator.batch_execute(&call).await.unwrap();
    }
}

#[tokio::test]
async fn without_their_guards_bad_acts_go_through() {
    let database = Database::new().await;
    let client = database.connect().await;
    let pausing = lane("pause_outbox_lane", "'alice'");
    for (function, guard, instead, cases) in [
        ("check_actor", "RAISE EXCEPTION 'p_actor", "RAISE NOTICE 'p_actor", &UNSIGNED[3..4]),
        ("check_actor", "RAISE EXCEPTION 'p_reason", "RAISE NOTICE 'p_reason", &UNSIGNED[5..]),
        (
            "pause_outbox_lane",
            "IF v_fault IS NOT NULL",
            "IF false AND v_fault IS NOT NULL",
            &BAD_LANES[2..4],
        ),
    ] {
        assert_eq!(let_through(&client, &pausing, cases).await, [""; 0], "with {guard}");
        database.take_out(function, guard, instead).await;
        assert_eq!(
            let_through(&client, &pausing, cases).await.len(),
            cases.len(),
            "without {guard}"
        );
    }
}
