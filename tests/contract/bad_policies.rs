//! Which policies and settings are refused, and how the operator and the worker are told.

use crate::refusals::{Call, Case, assert_needs_read_committed, assert_refused, let_through};
use crate::support::Database;

const WHO: (&str, &str) = ("p_actor", "'ops'");
const WHY: (&str, &str) = ("p_reason", "'because'");

const BAD_POLICIES: [Case; 21] = [
    ("p_policies", "NULL", "P7118", "p_policies"),
    ("p_policies", "'null'", "P7118", "p_policies"),
    ("p_policies", "'[]'", "P7118", "p_policies"),
    ("p_policies", "'\"ach\"'", "P7118", "p_policies"),
    ("p_policies", "'{\"ach\": 1}'", "P7118", "p_policies.ach: must be a JSON object, not number"),
    ("p_policies", "'{\"ach\": null}'", "P7118", "p_policies.ach"),
    ("p_policies", "'{\"ach\": []}'", "P7118", "p_policies.ach"),
    ("p_policies", "'{\"dlq\": {}}'", "P7103", "p_policies: \"dlq\""),
    ("p_policies", "'{\"ACH\": {}}'", "P7103", "p_policies: \"ACH\""),
    ("p_policies", "'{\"\": {}}'", "P7103", "p_policies: \"\""),
    ("p_policies", "'{\"a b\": {}}'", "P7103", "p_policies: \"a b\""),
    (
        "p_policies",
        "'{\"ach\": {\"order\": \"strict\"}}'",
        "P7118",
        "p_policies.ach.order: 'strict' is not understood",
    ),
    (
        "p_policies",
        "'{\"ach\": {\"ordering\": \"loose\"}}'",
        "P7118",
        "p_policies.ach.ordering: 'loose'",
    ),
    ("p_policies", "'{\"ach\": {\"ordering\": 1}}'", "P7118", "p_policies.ach.ordering: '1'"),
    ("p_policies", "'{\"ach\": {\"ordering\": null}}'", "P7118", "p_policies.ach.ordering: null"),
    (
        "p_policies",
        "'{\"ach\": {\"on_failed\": \"stop\"}}'",
        "P7118",
        "p_policies.ach.on_failed: 'stop'",
    ),
    ("p_policies", "'{\"ach\": {\"on_failed\": [\"halt\"]}}'", "P7118", "p_policies.ach.on_failed"),
    (
        "p_policies",
        "'{\"ach\": {\"delivery\": \"once\"}}'",
        "P7118",
        "p_policies.ach.delivery: 'once'",
    ),
    ("p_policies", "'{\"ach\": {\"dlq\": \"file\"}}'", "P7118", "p_policies.ach.dlq: 'file'"),
    ("p_policies", "'{\"ach\": {\"dlq\": true}}'", "P7118", "p_policies.ach.dlq: 'true'"),
    (
        "p_policies",
        "'{\"ach\": {\"on_failed\": \"halt\", \"ordering\": \"none\"}}'",
        "P7118",
        "p_policies.ach: on_failed = halt needs ordering = strict",
    ),
];

const BAD_SETTINGS: [Case; 24] = [
    ("p_settings", "NULL", "P7119", "p_settings"),
    ("p_settings", "'null'", "P7119", "p_settings"),
    ("p_settings", "'[]'", "P7119", "p_settings"),
    ("p_settings", "'7'", "P7119", "p_settings"),
    ("p_settings", "'{\"hot_day\": 7}'", "P7119", "p_settings: \"hot_day\" is not a setting"),
    ("p_settings", "'{\"only_row\": true}'", "P7119", "p_settings: \"only_row\" is not a setting"),
    ("p_settings", "'{\"batch_events\": \"true\"}'", "P7119", "p_settings.batch_events"),
    ("p_settings", "'{\"batch_events\": null}'", "P7119", "p_settings.batch_events"),
    ("p_settings", "'{\"wake_up\": 1}'", "P7119", "p_settings.wake_up"),
    ("p_settings", "'{\"hot_days\": \"7\"}'", "P7119", "p_settings.hot_days"),
    ("p_settings", "'{\"hot_days\": null}'", "P7119", "p_settings.hot_days"),
    ("p_settings", "'{\"hot_days\": 0}'", "P7119", "hot_days 1 to 3650"),
    ("p_settings", "'{\"hot_days\": -1}'", "P7119", "hot_days 1 to 3650"),
    ("p_settings", "'{\"hot_days\": 3651}'", "P7119", "hot_days 1 to 3650"),
    ("p_settings", "'{\"hot_days\": 7.5}'", "P7119", "hot_days 1 to 3650"),
    ("p_settings", "'{\"hot_days\": 1e30}'", "P7119", "hot_days 1 to 3650"),
    ("p_settings", "'{\"drop_after_days\": 7}'", "P7119", "drop_after_days more than hot_days"),
    ("p_settings", "'{\"drop_after_days\": \"never\"}'", "P7119", "p_settings.drop_after_days"),
    ("p_settings", "'{\"drop_after_days\": 99999999999}'", "P7119", "drop_after_days"),
    ("p_settings", "'{\"partition_days\": 0}'", "P7119", "partition_days 1 to 366"),
    ("p_settings", "'{\"partition_days\": 367}'", "P7119", "partition_days 1 to 366"),
    ("p_settings", "'{\"partitions_ahead\": 0}'", "P7119", "partitions_ahead 1 to 60"),
    ("p_settings", "'{\"partitions_ahead\": 61}'", "P7119", "partitions_ahead 1 to 60"),
    ("p_settings", "'{\"partitions_ahead\": {}}'", "P7119", "p_settings.partitions_ahead"),
];

const UNSIGNED: [Case; 4] = [
    ("p_actor", "NULL", "P7113", "p_actor is null"),
    ("p_actor", "' '", "P7113", "p_actor is empty"),
    ("p_reason", "NULL", "P7114", "p_reason is null"),
    ("p_reason", "''", "P7114", "p_reason is empty"),
];

fn setting_policies() -> Call {
    Call::new(
        "set_rail_policies",
        &[("p_policies", "'{\"ach\": {\"on_failed\": \"halt\"}}'"), WHO, WHY],
    )
}

fn checking_policies() -> Call {
    Call::new("check_rail_policies", &[("p_policies", "'{\"ach\": {\"on_failed\": \"skip\"}}'")])
}

fn setting() -> Call {
    Call::new(
        "set_outbox_settings",
        &[("p_settings", "'{\"hot_days\": 14, \"drop_after_days\": null}'"), WHO, WHY],
    )
}

#[tokio::test]
async fn bad_policies_are_refused_by_name() {
    let database = Database::new().await;
    let witness = database.connect().await;
    let executor = database.connect_as("symphony_executor").await;
    assert_refused(&witness, &executor, &checking_policies(), &BAD_POLICIES).await;
    let operator = database.connect_as("symphony_operator").await;
    assert_needs_read_committed(&operator, &setting_policies()).await;
    let cases = [&BAD_POLICIES[..], &UNSIGNED].concat();
    assert_refused(&witness, &operator, &setting_policies(), &cases).await;
}

#[tokio::test]
async fn bad_settings_are_refused_by_name() {
    let database = Database::new().await;
    let witness = database.connect().await;
    let operator = database.connect_as("symphony_operator").await;
    assert_needs_read_committed(&operator, &setting()).await;
    let cases = [&BAD_SETTINGS[..], &UNSIGNED].concat();
    assert_refused(&witness, &operator, &setting(), &cases).await;
}

#[tokio::test]
async fn without_their_guards_bad_policies_and_settings_go_through() {
    let database = Database::new().await;
    let client = database.connect().await;
    let guard = "RAISE EXCEPTION 'p_policies.%.%";
    database.take_out("check_policies_input", guard, "RAISE NOTICE 'p_policies.%.%").await;
    let through = let_through(&client, &checking_policies(), &BAD_POLICIES).await;
    assert!(
        through.contains(&"p_policies => '{\"ach\": {\"ordering\": null}}'".to_owned()),
        "{through:#?}"
    );

    database
        .take_out(
            "set_outbox_settings",
            "RAISE EXCEPTION 'p_settings: %",
            "RAISE NOTICE 'p_settings: %",
        )
        .await;
    let through = let_through(&client, &setting(), &BAD_SETTINGS).await;
    assert!(through.contains(&"p_settings => '{\"hot_day\": 7}'".to_owned()), "{through:#?}");
}
