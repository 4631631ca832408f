//! `trestle policies`

use serde_json::{Value, json};

use crate::support::{Database, trestle};

/// What it prints as JSON, for a rail that halts.
fn compared(url: &str, arguments: &[&str], code: i32) -> Value {
    let mut command = trestle(url, &[&["policies", "--json"], arguments].concat());
    command.env("TRESTLE_RAILS__BANK__KIND", "http");
    command.env("TRESTLE_RAILS__BANK__URL", "https://bank.example/pay");
    let done = command.env("TRESTLE_RAILS__BANK__ON_FAILED", "halt").assert().code(code);
    let document: Value = serde_json::from_slice(&done.get_output().stdout).unwrap();
    assert_eq!(document["version"], 1);
    document
}

#[tokio::test]
async fn programs_are_told_what_differs_and_what_was_put_in_force() {
    let database = Database::new().await;
    let url = database.url_as("symphony_operator").await;
    let halts =
        json!([{ "rail": "bank", "key": "on_failed", "in_force": "skip", "configured": "halt" }]);
    let found = compared(&url, &[], 1);
    assert_eq!((&found["differences"], &found["applied_version"]), (&halts, &Value::Null));
    let applied = compared(&url, &["--apply", "--reason", "why"], 0);
    assert_eq!(applied["differences"], halts);
    assert!(applied["applied_version"].is_number(), "{applied}");
    assert_eq!(compared(&url, &[], 0)["differences"], json!([]));
}
