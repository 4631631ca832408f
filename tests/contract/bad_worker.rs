//! What workers may not say, and how they are told.

use crate::calls::{Claimed, claim, enqueue};
use crate::refusals::{Call, Case, assert_needs_read_committed, assert_refused, let_through};
use crate::support::Database;

const BAD_WORKERS: [Case; 4] = [
    ("p_worker_id", "NULL", "P7109", "p_worker_id"),
    ("p_worker_id", "''", "P7109", "p_worker_id"),
    ("p_worker_id", "'  '", "P7109", "p_worker_id"),
    ("p_worker_id", "repeat('w', 256)", "P7109", "p_worker_id"),
];

const BAD_SIZES: [Case; 5] = [
    ("p_batch_size", "NULL", "P7110", "p_batch_size is null"),
    ("p_batch_size", "0", "P7110", "p_batch_size is 0"),
    ("p_batch_size", "-1", "P7110", "p_batch_size is -1"),
    ("p_batch_size", "10001", "P7110", "p_batch_size is 10001"),
    ("p_batch_size", "1000000", "P7110", "p_batch_size is 1000000"),
];

const BAD_LEASES: [Case; 5] = [
    ("p_lease_seconds", "NULL", "P7111", "p_lease_seconds is null"),
    ("p_lease_seconds", "0", "P7111", "p_lease_seconds is 0"),
    ("p_lease_seconds", "-60", "P7111", "p_lease_seconds is -60"),
    ("p_lease_seconds", "3601", "P7111", "p_lease_seconds is 3601"),
    ("p_lease_seconds", "2147483647", "P7111", "p_lease_seconds is 2147483647"),
];

const BAD_CLAIMS: [Case; 6] = [
    ("p_lane_rows", "0", "P7110", "p_lane_rows is 0"),
    ("p_lane_rows", "-1", "P7110", "p_lane_rows is -1"),
    ("p_lane_rows", "1000000", "P7110", "p_lane_rows is 1000000"),
    ("p_rail_types", "ARRAY[NULL]::text[]", "P7103", "p_rail_types"),
    ("p_rail_types", "'{ach,Not A Rail}'", "P7103", "p_rail_types"),
    ("p_rail_types", "'{\"\"}'", "P7103", "p_rail_types"),
];

/// Ids and tokens of rows that a worker says it holds.
const BAD_ROWS: [Case; 8] = [
    ("p_outbox_ids", "NULL", "P7116", "p_outbox_ids"),
    ("p_lease_tokens", "NULL", "P7116", "p_lease_tokens"),
    ("p_outbox_ids+p_lease_tokens", "NULL", "P7116", "p_outbox_ids"),
    ("p_outbox_ids", "ARRAY[gen_random_uuid(), gen_random_uuid()]", "P7116", "p_outbox_ids"),
    ("p_lease_tokens", "ARRAY[gen_random_uuid(), gen_random_uuid()]", "P7116", "same length"),
    ("p_outbox_ids", "ARRAY[NULL]::uuid[]", "P7116", "p_outbox_id"),
    ("p_lease_tokens", "ARRAY[NULL]::uuid[]", "P7116", "p_lease_token"),
    (
        "p_outbox_ids+p_lease_tokens",
        "array_fill(gen_random_uuid(), ARRAY[10001])",
        "P7110",
        "p_outbox_ids has 10001 rows",
    ),
];

const BAD_DELAYS: [Case; 4] = [
    ("p_delay_seconds", "NULL", "P7112", "p_delay_seconds is null"),
    ("p_delay_seconds", "-1", "P7112", "p_delay_seconds is -1"),
    ("p_delay_seconds", "604801", "P7112", "p_delay_seconds is 604801"),
    ("p_delay_seconds", "2147483647", "P7112", "p_delay_seconds is 2147483647"),
];

const WORKER: (&str, &str) = ("p_worker_id", "'worker'");

fn claiming() -> Call {
    Call::new("claim_outbox_batch", &[("p_batch_size", "10"), WORKER, ("p_lease_seconds", "60")])
}

fn repairing() -> Call {
    Call::new("repair_expired_leases", &[("p_batch_size", "10"), WORKER])
}

/// `function` about `row`, which `worker` holds.
fn about(function: &'static str, row: &Claimed, also: (&'static str, &str)) -> Call {
    let ids = format!("'{{{}}}'", row.outbox_id);
    let tokens = format!("'{{{}}}'", row.lease_token);
    Call::new(function, &[WORKER, ("p_outbox_ids", &ids), ("p_lease_tokens", &tokens), also])
}

async fn with_a_held_row() -> (Database, Claimed) {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "ach").await;
    let row = claim(&client, "worker", 1).await.remove(0);
    (database, row)
}

fn all(tables: &[&[Case]]) -> Vec<Case> {
    tables.concat()
}

#[tokio::test]
async fn a_bad_claim_is_refused_by_name() {
    let database = Database::new().await;
    let witness = database.connect().await;
    enqueue(&witness, "alice", "ach").await;
    let executor = database.connect_as("symphony_executor").await;
    assert_needs_read_committed(&executor, &claiming()).await;
    let cases = all(&[&BAD_WORKERS, &BAD_SIZES, &BAD_LEASES, &BAD_CLAIMS]);
    assert_refused(&witness, &executor, &claiming(), &cases).await;
}

#[tokio::test]
async fn a_bad_repair_is_refused_by_name() {
    let database = Database::new().await;
    let executor = database.connect_as("symphony_executor").await;
    assert_needs_read_committed(&executor, &repairing()).await;
    let cases = all(&[&BAD_WORKERS, &BAD_SIZES]);
    assert_refused(&database.connect().await, &executor, &repairing(), &cases).await;
}

#[tokio::test]
async fn a_bad_renewal_is_refused_by_name() {
    let (database, row) = with_a_held_row().await;
    let executor = database.connect_as("symphony_executor").await;
    let call = about("renew_outbox_leases", &row, ("p_lease_seconds", "60"));
    assert_needs_read_committed(&executor, &call).await;
    let cases = all(&[&BAD_WORKERS, &BAD_ROWS, &BAD_LEASES]);
    assert_refused(&database.connect().await, &executor, &call, &cases).await;
}

#[tokio::test]
async fn a_bad_release_is_refused_by_name() {
    let (database, row) = with_a_held_row().await;
    let executor = database.connect_as("symphony_executor").await;
    let call = about("release_outbox_leases", &row, ("p_delay_seconds", "0"));
    assert_needs_read_committed(&executor, &call).await;
    let cases = all(&[&BAD_WORKERS, &BAD_ROWS, &BAD_DELAYS]);
    assert_refused(&database.connect().await, &executor, &call, &cases).await;
}

#[tokio::test]
async fn without_their_guards_bad_calls_of_workers_go_through() {
    let (database, row) = with_a_held_row().await;
    let client = database.connect().await;
    let renewing = about("renew_outbox_leases", &row, ("p_lease_seconds", "60"));
    let releasing = about("release_outbox_leases", &row, ("p_delay_seconds", "0"));
    for (guard, call, cases) in [
        ("check_worker", &claiming(), &BAD_WORKERS[..]),
        ("check_batch_size", &repairing(), &BAD_SIZES[..]),
        ("check_lease_seconds", &renewing, &BAD_LEASES[..]),
        ("held_rows", &renewing, &BAD_ROWS[..]),
        ("check_delay_seconds", &releasing, &BAD_DELAYS[..]),
    ] {
        assert_eq!(let_through(&client, call, cases).await, [""; 0], "with {guard}");
        database.take_out(guard, "RAISE EXCEPTION '", "RAISE NOTICE '").await;
        assert_ne!(let_through(&client, call, cases).await, [""; 0], "without {guard}");
    }
}
