//! The gauges: what each of them counts, that one worker samples them for all, and what they cost.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::calls::{claim, complete, enqueue};
use crate::lane_acts::{claim_rail, pause, set_policies};
use crate::steps::{Request, count, run};
use crate::support::Database;
use crate::upkeep_partitions::without_a_partition;

const TENANT: &str = "11111111-1111-1111-1111-111111111111";

/// What the worker holds on this rail is to be tried again in ten minutes.
const RETRY_LATER: &str = "SELECT outbox.complete_outbox_attempt(p.outbox_id, p.lease_token, 'worker', \
    'RETRYABLE', p_retry_delay_seconds => 600) \
    FROM outbox.payment_outbox_pending AS p WHERE p.rail_type = 'sepa' AND p.claimed_by = 'worker'";

/// A new sample, as if the time for it had come.
async fn sample(database: &Database, client: &Client) -> Value {
    let due = "UPDATE outbox.payment_outbox_gauges SET next_at = '-infinity'";
    run(&database.connect().await, due).await;
    last_sample(client).await
}

async fn last_sample(client: &Client) -> Value {
    client.query_one("SELECT outbox.sample_outbox_gauges()", &[]).await.unwrap().get(0)
}

async fn note(client: &Client, worker: &str, rail: &str, tenant: &str) {
    run(client, &format!("SELECT outbox.note_worker('{worker}', '{{{rail}}}', {tenant})")).await;
}

/// The number of lanes in each state.
fn lanes(sample: &Value) -> Value {
    let states = ["due", "delayed", "blocked", "leased", "paused", "halted"];
    states.iter().map(|state| sample[format!("{state}_lanes")].clone()).collect()
}

#[tokio::test]
async fn lanes_are_counted_by_what_they_wait_for() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"bank": {"on_failed": "halt"}}"#).await.unwrap();
    let empty = sample(&database, &client).await;
    assert_eq!(lanes(&empty), json!([0, 0, 0, 0, 0, 0]));
    assert_eq!(empty["oldest_pending_age_seconds"], Value::Null);

    // Halted, with a dead letter that is due.
    enqueue(&client, "halted", "bank").await;
    let failed = claim_rail(&client, "bank", 1).await.remove(0);
    complete(&client, "worker", &failed, "FAILED").await.unwrap();
    // Leased.
    enqueue(&client, "leased", "ach").await;
    claim_rail(&client, "ach", 1).await;
    // Two that wait for another try: nothing is behind the first, a row that is due behind the second.
    for participant in ["delayed", "blocked"] {
        enqueue(&client, participant, "sepa").await;
    }
    claim_rail(&client, "sepa", 2).await;
    run(&client, RETRY_LATER).await;
    for rail in ["ach", "sepa"] {
        enqueue(&client, "blocked", rail).await;
    }
    // A head that its user has put off, with a row behind it that is put off too.
    let later =
        Request::new("later", "sepa").with(|later| later.not_before = Some("tomorrow".to_owned()));
    later.call(&client).await.unwrap();
    later.with(|other| other.key = "other".to_owned()).call(&client).await.unwrap();
    pause(&client, "paused", "sepa").await.unwrap();
    enqueue(&client, "paused", "sepa").await;

    let sample = sample(&database, &client).await;
    // The dead letter and blocked's row on ach are due.
    assert_eq!(lanes(&sample), json!([2, 2, 1, 1, 1, 1]), "{sample}");
    assert_eq!(sample["pending_depth"], 9, "{sample}");
    assert_eq!(sample["depth_is_exact"], true);
    assert_eq!(sample["dlq_depth"], 1);
    assert_eq!(sample["expired_leases"], 0);
    assert!(sample["dlq_undelivered_age_seconds"].as_f64().unwrap() < 60.0, "{sample}");
}

#[tokio::test]
async fn leases_that_are_over_ages_and_open_failures_are_seen() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "ach").await;
    let failed = claim(&client, "worker", 1).await.remove(0);
    complete(&client, "worker", &failed, "FAILED").await.unwrap();
    enqueue(&client, "bob", "ach").await;
    claim_rail(&client, "ach", 1).await;
    database.advance(Duration::from_secs(1_000)).await;
    let sample = sample(&database, &client).await;
    assert_eq!(sample["expired_leases"], 1);
    assert_eq!(sample["leased_lanes"], 0);
    assert_eq!(sample["dlq_depth"], 1);
    for age in ["oldest_pending_age_seconds", "dlq_undelivered_age_seconds"] {
        let seconds = sample[age].as_f64().unwrap();
        assert!((1_000.0..1_060.0).contains(&seconds), "{age} {seconds}");
    }
}

#[tokio::test]
async fn a_lane_is_unroutable_while_no_live_worker_runs_its_rail_for_its_tenant() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "kafka").await;
    let of_a_tenant =
        Request::new("bob", "kafka").with(|bob| bob.tenant = Some(TENANT.parse().unwrap()));
    of_a_tenant.call(&client).await.unwrap();
    let unroutable =
        async || sample(&database, &client).await["unroutable_lanes"].as_i64().unwrap();
    assert_eq!(unroutable().await, 2);
    note(&client, "other rail", "ach", "NULL").await;
    assert_eq!(unroutable().await, 2);
    note(&client, "one tenant", "kafka", &format!("'{TENANT}'")).await;
    assert_eq!(unroutable().await, 1);
    note(&client, "everybody", "kafka", "NULL").await;
    assert_eq!(unroutable().await, 0);
    database.advance(Duration::from_secs(30)).await;
    assert_eq!(unroutable().await, 2, "nobody is live any more");
}

/// Its lanes are leased and never due: nothing else would tell.
#[tokio::test]
async fn a_lane_in_a_batch_is_unroutable_while_no_live_worker_runs_its_rail() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"eos": {"delivery": "exactly_once", "shards": 1}}"#).await.unwrap();
    note(&client, "owner", "eos", "NULL").await;
    for participant in ["alice", "bob"] {
        enqueue(&client, participant, "eos").await;
    }
    run(&client, "SELECT outbox.lease_outbox_shards('owner', 'eos', 60)").await;
    run(&client, "SELECT outbox.reconcile_outbox_shard('owner', 'eos', 0::smallint, 1, 0, '{}', '{}', '{}', '{}', '{}', '{}', NULL, '{}', 'me')").await;
    let batch = "SELECT count(*) FROM outbox.claim_outbox_batch(10, 'owner', 60, '{eos}', NULL, NULL, '{0}', '{1}', '{}', '{0}')";
    assert_eq!(count(&client, batch).await, 2);
    let unroutable =
        async || sample(&database, &client).await["unroutable_lanes"].as_i64().unwrap();
    assert_eq!(unroutable().await, 0);
    database.advance(Duration::from_secs(31)).await;
    assert_eq!(unroutable().await, 2, "its owner is gone");
    note(&client, "other rail", "ach", "NULL").await;
    note(&client, "one tenant", "eos", &format!("'{TENANT}'")).await;
    assert_eq!(unroutable().await, 2, "neither can own the shard");
    note(&client, "heir", "eos", "NULL").await;
    assert_eq!(unroutable().await, 0);
}

/// One sampler, whoever it is: the others read what it has found, and do not wait for it.
#[tokio::test]
async fn one_worker_samples_and_the_others_read() {
    let database = Database::new().await;
    database.control_clock().await;
    let sampler = database.connect_as("symphony_executor").await;
    let reader = database.connect_as("symphony_executor").await;
    let client = database.connect().await;
    assert_eq!(sample(&database, &sampler).await["pending_depth"], 0);
    enqueue(&client, "alice", "kafka").await;
    assert_eq!(last_sample(&reader).await["pending_depth"], 0, "the sample is not old enough");
    database.advance(Duration::from_secs(60)).await;
    run(&sampler, "BEGIN").await;
    assert_eq!(last_sample(&sampler).await["pending_depth"], 1);
    crate::steps::never_wait(&reader).await;
    assert_eq!(last_sample(&reader).await["pending_depth"], 0, "the last sample that is complete");
    run(&sampler, "COMMIT").await;
    assert_eq!(last_sample(&reader).await["pending_depth"], 1);
    assert_eq!(count(&client, "SELECT count(*) FROM outbox.payment_outbox_horizon").await, 2);
}

#[tokio::test]
async fn a_row_whose_partition_is_missing_shows_in_the_default_one() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    assert_eq!(sample(&database, &client).await["default_partition_rows"], 0);
    without_a_partition(&client).await;
    assert_eq!(sample(&database, &client).await["default_partition_rows"], 1);
}

/// A role that sees nobody's statistics sees how old the oldest snapshot is.
#[tokio::test]
async fn a_snapshot_that_is_held_open_shows_its_age() {
    let database = Database::new().await;
    database.control_clock().await;
    let executor = database.connect_as("symphony_executor").await;
    let age = async || {
        sample(&database, &executor).await["oldest_snapshot_age_seconds"].as_f64().unwrap()
    };
    assert_eq!(age().await, 0.0);
    let reader = database.connect().await;
    run(&reader, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await;
    age().await;
    database.advance(Duration::from_secs(100)).await;
    let held = age().await;
    assert!((100.0..120.0).contains(&held), "{held}");
    run(&reader, "COMMIT").await;
    assert_eq!(age().await, 0.0);
    database.advance(Duration::from_secs(86_400)).await;
    age().await;
    let client = database.connect().await;
    let kept = "SELECT count(*) FROM outbox.payment_outbox_horizon";
    assert_eq!(count(&client, kept).await, 1, "a day is kept");
}

/// With ten for a hundred thousand, and nothing for a gigabyte.
#[tokio::test]
async fn beyond_its_bound_the_depth_is_an_estimate_that_says_so() {
    let database = Database::new().await;
    let client = database.connect().await;
    database.take_out("outbox_gauges", "ELSE 100001", "ELSE 11").await;
    let depth = async || {
        let row = client.query_one("SELECT * FROM outbox.outbox_gauges()", &[]).await.unwrap();
        (row.get::<_, i64>("pending_depth"), row.get::<_, bool>("depth_is_exact"))
    };
    for _ in 0..10 {
        enqueue(&client, "alice", "ach").await;
    }
    assert_eq!(depth().await, (10, true));
    for _ in 0..10 {
        enqueue(&client, "alice", "ach").await;
    }
    run(&client, "ANALYZE outbox.payment_outbox_pending").await;
    assert_eq!(depth().await, (20, false));
    database.take_out("outbox_gauges", "> 1073741824", "> 0").await;
    assert_eq!(depth().await, (20, false), "not even counted");
}
