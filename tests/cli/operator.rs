//! What all commands of an operator have in common: how they meet a database that is not theirs.

use crate::scene::{document, run};
use crate::support::{Database, trestle};

const ID: &str = "01a1e443-c8c2-7c0c-81c7-1a7144d77994";

/// Each command of an operator, as it is used rightly.
pub(crate) const COMMANDS: [&[&str]; 13] = [
    &["status"],
    &["trace", "pay-1"],
    &["lanes", "list"],
    &["lanes", "pause", "alice", "kafka", "--reason", "x"],
    &["lanes", "resume", "alice", "kafka", "--reason", "x"],
    &["lanes", "skip", "alice", "kafka", "--reason", "x"],
    &["dlq", "list"],
    &["dlq", "show", ID],
    &["dlq", "dismiss", ID, "--reason", "x"],
    &["dlq", "replay", ID, "--reason", "x", "--yes"],
    &["repair"],
    &["retention"],
    &["policies"],
];

#[tokio::test]
async fn a_database_without_the_outbox_is_explained() {
    let database = Database::empty().await;
    for command in COMMANDS {
        let message = run(&database.url(), command, 1).stderr;
        assert!(message.contains("run `trestle migrate`"), "{command:?}: {message}");
    }
}

#[tokio::test]
async fn a_database_that_is_older_or_newer_is_refused() {
    let database = Database::new().await;
    let client = database.connect().await;
    for (version, expected) in [("0.0.1", "run `trestle migrate`"), ("99.1.2", "trestle 99.1.2")] {
        let change = "UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = $1";
        client.execute(change, &[&version]).await.unwrap();
        for command in COMMANDS {
            let message = run(&database.url(), command, 1).stderr;
            assert!(message.contains(expected), "{command:?}: {message}");
        }
    }
    let lanes = "SELECT count(*) FROM outbox.payment_outbox_lanes";
    assert_eq!(client.query_one(lanes, &[]).await.unwrap().get::<_, i64>(0), 0);
}

#[test]
fn a_server_that_cannot_be_reached_is_a_failure() {
    for command in COMMANDS {
        let message = run("postgres://u:hunter2@127.0.0.1:1/d", command, 1).stderr;
        assert!(message.contains("127.0.0.1:1/d") && !message.contains("hunter2"), "{message}");
    }
}

#[tokio::test]
async fn acts_work_where_the_default_isolation_is_another() {
    let database = Database::new().await;
    let set = format!(
        "ALTER DATABASE {} SET default_transaction_isolation = 'serializable'",
        database.name()
    );
    database.connect().await.batch_execute(&set).await.unwrap();
    run(&database.url(), &["lanes", "pause", "alice", "kafka", "--reason", "x"], 0);
    run(&database.url(), &["repair"], 0);
}

#[tokio::test]
async fn a_pass_of_repair_needs_a_workers_right_and_finds_nothing() {
    let database = Database::new().await;
    let url = database.url_as("symphony_executor").await;
    assert_eq!(run(&url, &["repair"], 0).stdout, "No lease has expired.\n");
    assert_eq!(document(&url, &["repair"])["repaired"], serde_json::json!([]));
    let url = database.url_as("symphony_readonly").await;
    assert!(run(&url, &["repair"], 1).stderr.contains("lacks a right"));
    run(&url, &["repair", "--actor", &"x".repeat(201)], 2);
}

#[test]
fn completions_need_neither_database_nor_configuration() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run("", &["completions", shell], 0).stdout;
        assert!(script.contains("trestle") && script.contains("replay"), "{shell}");
    }
    trestle("", &["completions", "cmd"]).assert().code(2);
}
