//! Which outcomes are refused as a whole, and how the worker is told.

use crate::calls::{Claimed, claim, enqueue};
use crate::refusals::{Call, Case, assert_needs_read_committed, assert_refused, let_through};
use crate::support::Database;

const BAD_OUTCOME: [Case; 17] = [
    ("p_worker_id", "NULL", "P7109", "p_worker_id"),
    ("p_worker_id", "''", "P7109", "p_worker_id"),
    ("p_worker_id", "repeat('w', 256)", "P7109", "p_worker_id"),
    ("p_worker_id", "'another'", "P7002", "LEASE_LOST"),
    ("p_outbox_id", "NULL", "P7116", "p_outbox_id"),
    ("p_outbox_id", "gen_random_uuid()", "P7002", "LEASE_LOST"),
    ("p_outbox_id", "'not-a-uuid'", "22P02", "uuid"),
    ("p_lease_token", "NULL", "P7116", "p_lease_token"),
    ("p_lease_token", "gen_random_uuid()", "P7002", "LEASE_LOST"),
    ("p_state", "NULL", "P7003", "p_state is null"),
    ("p_state", "'ZOMBIE_REQUEUE'", "P7003", "p_state is ZOMBIE_REQUEUE"),
    ("p_state", "'DISPATCHING'", "22P02", "outbox_attempt_state"),
    ("p_latency_ms", "-1", "P7117", "p_latency_ms"),
    ("p_latency_ms", "-2147483648", "P7117", "p_latency_ms"),
    ("p_retry_delay_seconds", "-1", "P7112", "p_retry_delay_seconds is -1"),
    ("p_retry_delay_seconds", "604801", "P7112", "p_retry_delay_seconds is 604801"),
    ("p_retry_delay_seconds", "2147483647", "P7112", "p_retry_delay_seconds is 2147483647"),
];

const BAD_OUTCOMES: [Case; 25] = [
    ("p_worker_id", "NULL", "P7109", "p_worker_id"),
    ("p_worker_id", "' '", "P7109", "p_worker_id"),
    ("p_outbox_ids", "NULL", "P7116", "p_outbox_ids"),
    ("p_lease_tokens", "NULL", "P7116", "p_lease_tokens"),
    ("p_states", "NULL", "P7116", "p_states"),
    ("p_outbox_ids", "'{}'", "P7110", "p_outbox_ids has 0 rows"),
    (
        "p_outbox_ids+p_lease_tokens",
        "array_fill(gen_random_uuid(), ARRAY[10001])",
        "P7110",
        "p_outbox_ids has 10001 rows",
    ),
    ("p_outbox_ids", "ARRAY[gen_random_uuid(), gen_random_uuid()]", "P7116", "same length"),
    ("p_lease_tokens", "'{}'", "P7116", "same length"),
    ("p_outbox_ids", "ARRAY[ARRAY[gen_random_uuid()]]", "P7116", "one dimension"),
    ("p_states", "'{DISPATCHED,FAILED}'", "P7116", "same length"),
    ("p_rail_references", "'{a,b}'", "P7116", "same length"),
    ("p_rail_codes", "'{}'", "P7116", "same length"),
    ("p_error_codes", "'{a,b}'", "P7116", "same length"),
    ("p_error_messages", "'{a,b}'", "P7116", "same length"),
    ("p_latencies_ms", "'{1,2}'", "P7116", "same length"),
    ("p_retry_delays_seconds", "'{1,2}'", "P7116", "same length"),
    ("p_counted", "'{true,false}'", "P7116", "same length"),
    ("p_outbox_ids", "ARRAY[NULL]::uuid[]", "P7116", "p_outbox_id"),
    ("p_lease_tokens", "ARRAY[NULL]::uuid[]", "P7116", "p_lease_token"),
    ("p_latencies_ms", "'{-1}'", "P7117", "p_latenc"),
    ("p_retry_delays_seconds", "'{-1}'", "P7112", "p_retry_delay"),
    ("p_retry_delays_seconds", "'{2147483647}'", "P7112", "p_retry_delay"),
    ("p_states", "'{NONSENSE}'", "22P02", "outbox_attempt_state"),
    ("p_outbox_ids", "'{1}'", "22P02", "uuid"),
];

async fn with_a_held_row() -> (Database, Claimed) {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "ach").await;
    let row = claim(&client, "worker", 1).await.remove(0);
    (database, row)
}

fn one(row: &Claimed) -> Call {
    let good = [
        ("p_worker_id", "'worker'"),
        ("p_outbox_id", &format!("'{}'", row.outbox_id)),
        ("p_lease_token", &format!("'{}'", row.lease_token)),
        ("p_state", "'DISPATCHED'"),
    ];
    Call::new("complete_outbox_attempt", &good)
}

fn batch(row: &Claimed) -> Call {
    let good = [
        ("p_worker_id", "'worker'"),
        ("p_outbox_ids", &format!("'{{{}}}'", row.outbox_id)),
        ("p_lease_tokens", &format!("'{{{}}}'", row.lease_token)),
        ("p_states", "'{DISPATCHED}'"),
    ];
    Call::new("complete_outbox_batch", &good)
}

#[tokio::test]
async fn a_bad_outcome_is_refused_by_name() {
    let (database, row) = with_a_held_row().await;
    let executor = database.connect_as("symphony_executor").await;
    assert_needs_read_committed(&executor, &one(&row)).await;
    assert_refused(&database.connect().await, &executor, &one(&row), &BAD_OUTCOME).await;
}

#[tokio::test]
async fn a_bad_batch_of_outcomes_is_refused_by_name() {
    let (database, row) = with_a_held_row().await;
    let executor = database.connect_as("symphony_executor").await;
    assert_needs_read_committed(&executor, &batch(&row)).await;
    assert_refused(&database.connect().await, &executor, &batch(&row), &BAD_OUTCOMES).await;
}

#[tokio::test]
async fn without_the_look_at_the_outcomes_bad_ones_are_recorded() {
    let (database, row) = with_a_held_row().await;
    let client = database.connect().await;
    assert_eq!(let_through(&client, &batch(&row), &BAD_OUTCOMES).await, [""; 0]);
    database.take_out("complete_outbox_batch", ", outbox.check_outcomes(", ", concat(").await;
    let through = let_through(&client, &batch(&row), &BAD_OUTCOMES).await;
    for case in
        ["p_rail_references => '{a,b}'", "p_retry_delays_seconds => '{-1}'", "p_states => NULL"]
    {
        assert!(through.contains(&case.to_owned()), "{case}: {through:#?}");
    }
    let through = let_through(&client, &one(&row), &BAD_OUTCOME).await;
    assert!(through.contains(&"p_retry_delay_seconds => 604801".to_owned()), "{through:#?}");
}
