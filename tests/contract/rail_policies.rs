//! The policies of the rails: one version in force, and no worker that believes in another.

use tokio_postgres::{Client, Error};

use crate::calls::code;
use crate::lane_acts::{ACTOR, REASON, is_waiting, numbers, outcome, pid, set_policies};
use crate::support::Database;

/// The version in force for a worker with this configuration.
async fn check(client: &Client, policies: &str) -> Result<i32, Error> {
    const CALL: &str = "SELECT outbox.check_rail_policies($1::text::jsonb)";
    Ok(client.query_one(CALL, &[&policies]).await?.get(0))
}

const IN_FORCE: &str = "SELECT DISTINCT version::int8 FROM outbox.payment_outbox_rail_policies \
    WHERE in_force ORDER BY 1";

/// Which versions are in force after a second one, for other rails, was set.
async fn after_two_versions(database: &Database) -> Vec<i64> {
    let client = database.connect().await;
    let first = set_policies(&client, r#"{"ach": {"on_failed": "halt"}}"#).await.unwrap();
    let second = set_policies(&client, r#"{"sepa": {"dlq": "ledger"}}"#).await.unwrap();
    assert_eq!((first, second), (1, 2));
    numbers(&client, IN_FORCE).await
}

#[tokio::test]
async fn a_new_version_replaces_the_one_before_as_a_whole() {
    let database = Database::new().await;
    assert_eq!(after_two_versions(&database).await, [2]);
    let client = database.connect().await;
    assert_eq!(check(&client, r#"{"ach": {"on_failed": "skip"}}"#).await.unwrap(), 2);
}

#[tokio::test]
async fn without_ending_the_version_before_two_would_be_in_force() {
    let database = Database::new().await;
    let guard = "SET in_force = false WHERE in_force";
    database.take_out("set_rail_policies", guard, "SET in_force = false WHERE false").await;
    assert_eq!(after_two_versions(&database).await, [1, 2]);
}

#[tokio::test]
async fn what_a_policy_does_not_name_has_its_default() {
    let defaults =
        r#"{"ordering": "strict", "on_failed": "skip", "delivery": "idempotent", "dlq": "topic"}"#;
    let database = Database::new().await;
    let client = database.connect().await;
    let all = format!(r#"{{"ach": {defaults}, "sepa": {defaults}}}"#);
    assert_eq!(check(&client, &all).await.unwrap(), 0, "before any version");
    set_policies(&client, r#"{"ach": {}}"#).await.unwrap();
    assert_eq!(check(&client, &all).await.unwrap(), 1, "after one that leaves everything open");
    assert_eq!(check(&client, "{}").await.unwrap(), 1);
}

/// What a worker is told whose configuration differs from the version in force in one value.
async fn disagreeing(database: &Database) -> Vec<String> {
    let client = database.connect().await;
    set_policies(&client, r#"{"ach": {"on_failed": "halt", "dlq": "ledger"}}"#).await.unwrap();
    let configurations = [
        r#"{"ach": {"on_failed": "halt"}}"#,
        r#"{"ach": {"dlq": "ledger"}}"#,
        r#"{"ach": {"on_failed": "halt", "dlq": "ledger", "delivery": "exactly_once"}}"#,
        r#"{"sepa": {"ordering": "none"}}"#,
    ];
    let mut told = Vec::new();
    for configuration in configurations {
        told.push(match check(&client, configuration).await {
            Ok(_) => "done".to_owned(),
            Err(error) => {
                assert_eq!(code(&error), "P7012");
                error.as_db_error().unwrap().message().to_owned()
            }
        });
    }
    told
}

#[tokio::test]
async fn a_worker_that_disagrees_is_refused_with_both_values() {
    let database = Database::new().await;
    let expected = [
        "rails.ach.dlq is 'topic' in this configuration, but 'ledger' is in force",
        "rails.ach.on_failed is 'skip' in this configuration, but 'halt' is in force",
        "rails.ach.delivery is 'exactly_once' in this configuration, but 'idempotent' is in force",
        "rails.sepa.ordering is 'none' in this configuration, but 'strict' is in force",
    ];
    assert_eq!(disagreeing(&database).await, expected);
}

#[tokio::test]
async fn without_the_comparison_workers_would_run_two_policies_at_once() {
    let database = Database::new().await;
    database.take_out("check_rail_policies", "IF FOUND", "IF false").await;
    assert_eq!(disagreeing(&database).await, ["done"; 4]);
}

/// Two operators set policies for different rails at the same time: the versions they are told,
/// and the rails in force.
async fn set_at_the_same_time(database: &Database) -> ([i32; 2], Vec<String>) {
    const RAILS: &str =
        "SELECT rail_type FROM outbox.payment_outbox_rail_policies WHERE in_force ORDER BY 1";
    let (one, other) = (database.connect().await, database.connect().await);
    let other_pid = pid(&other).await;
    one.batch_execute("BEGIN").await.unwrap();
    let first = set_policies(&one, r#"{"ach": {}}"#).await.unwrap();
    let second = tokio::spawn(async move { set_policies(&other, r#"{"sepa": {}}"#).await });
    while !second.is_finished() && !is_waiting(&one, other_pid).await {
        tokio::task::yield_now().await;
    }
    one.batch_execute("COMMIT").await.unwrap();
    let second = second.await.unwrap().unwrap();
    let rails = one.query(RAILS, &[]).await.unwrap();
    ([first, second], rails.iter().map(|row| row.get(0)).collect())
}

#[tokio::test]
async fn of_two_versions_set_at_the_same_time_the_later_is_in_force_alone() {
    let database = Database::new().await;
    assert_eq!(set_at_the_same_time(&database).await, ([1, 2], vec!["sepa".to_owned()]));
}

#[tokio::test]
async fn without_the_counter_s_lock_two_versions_would_become_one() {
    let database = Database::new().await;
    let count = "UPDATE outbox.payment_outbox_settings AS s SET policies_version = s.policies_version + 1 RETURNING s.policies_version INTO v_version;";
    let look =
        "SELECT s.policies_version + 1 INTO v_version FROM outbox.payment_outbox_settings AS s;";
    database.take_out("set_rail_policies", count, look).await;
    let mixed = vec!["ach".to_owned(), "sepa".to_owned()];
    assert_eq!(set_at_the_same_time(&database).await, ([1, 1], mixed));
}

#[tokio::test]
async fn a_version_that_names_no_rail_is_a_version_too() {
    let database = Database::new().await;
    let client = database.connect().await;
    assert_eq!(set_policies(&client, r#"{"ach": {"on_failed": "halt"}}"#).await.unwrap(), 1);
    assert_eq!(set_policies(&client, "{}").await.unwrap(), 2);
    assert_eq!(check(&client, r#"{"ach": {}}"#).await.unwrap(), 2);
    assert_eq!(set_policies(&client, r#"{"ach": {}}"#).await.unwrap(), 3);
}

/// What is answered to policies that nobody can mean.
async fn misunderstood(client: &Client) -> Vec<String> {
    let policies = [
        "[]",
        r#"{"ach": 1}"#,
        r#"{"ach": {"on_failed": "stop"}}"#,
        r#"{"ach": {"onfailed": "halt"}}"#,
        r#"{"ach": {"on_failed": "halt", "ordering": "none"}}"#,
        r#"{"ACH": {}}"#,
        r#"{"dlq": {}}"#,
    ];
    let mut told = Vec::new();
    for policy in policies {
        told.push(outcome(set_policies(client, policy).await));
    }
    told
}

#[tokio::test]
async fn policies_that_are_not_understood_are_refused_and_nothing_is_set() {
    let database = Database::new().await;
    let client = database.connect().await;
    let expected = ["P7118", "P7118", "P7118", "P7118", "P7118", "P7103", "P7103"];
    assert_eq!(misunderstood(&client).await, expected);
    assert_eq!(check(&client, "{}").await.unwrap(), 0);
}

#[tokio::test]
async fn without_the_check_a_misspelt_policy_would_be_taken_for_the_default() {
    let database = Database::new().await;
    database.take_out("check_policies_input", "ELSE false END", "ELSE true END").await;
    assert_eq!(misunderstood(&database.connect().await).await[3], "done");
}

#[tokio::test]
async fn setting_policies_leaves_an_event_with_who_why_and_what() {
    const EVENT: &str = "SELECT actor, reason, details ->> 'version', details #>> '{policies,ach,dlq}' \
        FROM outbox.payment_outbox_events WHERE event_type = 'POLICIES_SET'";
    let database = Database::new().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"ach": {"dlq": "ledger"}}"#).await.unwrap();
    let event = client.query_one(EVENT, &[]).await.unwrap();
    let told: [&str; 4] = std::array::from_fn(|at| event.get(at));
    assert_eq!(told, [ACTOR, REASON, "1", "ledger"]);
}

#[tokio::test]
async fn operators_set_policies_and_workers_check_them() {
    let database = Database::new().await;
    let operator = database.connect_as("symphony_operator").await;
    let executor = database.connect_as("symphony_executor").await;
    assert_eq!(set_policies(&operator, "{\"ach\": {}}").await.unwrap(), 1);
    assert_eq!(check(&executor, "{\"ach\": {}}").await.unwrap(), 1);
    assert_eq!(outcome(set_policies(&executor, "{}").await), "42501");
}
