//! Ids that name nothing, or something else, and users without the right: a clear message, the right
//! code, nothing done.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::operator::COMMANDS;
use crate::scene::{busy, failed_id, open, run};
use crate::support::User;

/// Whatever an operator's act could change.
async fn state(client: &Client) -> Vec<i64> {
    const QUERY: &str = "SELECT (SELECT count(*) FROM outbox.payment_outbox_pending), \
        (SELECT count(*) FROM outbox.payment_outbox_attempts), \
        (SELECT count(*) FROM outbox.payment_outbox_events), \
        (SELECT count(*) FROM outbox.payment_outbox_lanes WHERE paused_at IS NOT NULL OR halted_by IS NOT NULL)";
    let row = client.query_one(QUERY, &[]).await.unwrap();
    (0..4).map(|column| row.get(column)).collect()
}

#[tokio::test]
async fn an_id_that_is_none_or_of_another_kind_changes_nothing() {
    let (database, client) = busy().await;
    let before = (state(&client).await, open(&client).await);
    let pending =
        "SELECT outbox_id FROM outbox.payment_outbox_pending WHERE instruction_id = 'pay-6'";
    let pending: Uuid = client.query_one(pending, &[]).await.unwrap().get(0);
    let delivered =
        "SELECT outbox_id FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'";
    let delivered: Uuid = client.query_one(delivered, &[]).await.unwrap().get(0);
    let failed = failed_id(&client, "pay-1").await.to_string();
    let (pending, delivered, unknown) =
        (pending.to_string(), delivered.to_string(), Uuid::max().to_string());
    let why = ["--reason", "x"];
    for (arguments, code, words) in [
        (["dlq", "show", "pay-1"].as_slice(), 2, "invalid value 'pay-1'"),
        (&["dlq", "show", &unknown], 1, "is not a FAILED row"),
        (&["dlq", "show", &pending], 1, "is not a FAILED row"),
        (&["dlq", "dismiss", "alice"], 2, "invalid value 'alice'"),
        (&["dlq", "dismiss", &failed, &unknown], 1, "hint: nothing was changed"),
        (&["dlq", "dismiss", &pending], 1, "hint: nothing was changed"),
        (&["dlq", "dismiss", &delivered], 1, "hint: nothing was changed"),
        (&["dlq", "replay", "1", "--yes"], 2, "invalid value '1'"),
        (&["dlq", "replay", &failed, &unknown, "--yes"], 1, "nothing was replayed"),
        (&["dlq", "replay", &pending, "--yes"], 1, "is not a FAILED row"),
        (&["dlq", "replay", &delivered, "--yes"], 1, "is not a FAILED row"),
        (&["dlq", "replay", "--yes"], 2, "say which rows"),
        (&["lanes", "resume", "nobody", "kafka"], 1, "hint: `trestle lanes list --all`"),
        (&["lanes", "resume", "alice", "kafka"], 1, "is not paused"),
        (&["lanes", "skip", "nobody", "kafka"], 1, "hint: `trestle lanes list --all`"),
        (&["lanes", "skip", "dave", "kafka"], 1, "hint: it may be on its way"),
        (&["lanes", "pause", "alice", "Not A Rail"], 2, "rail_type"),
        (&["lanes", "pause", "", "kafka"], 2, "participant_id"),
        (&["lanes", "pause", "erin", "kafka"], 1, "already paused"),
    ] {
        let with_reason =
            if arguments[1] == "show" { arguments.to_vec() } else { [arguments, &why].concat() };
        let message = run(&database.url(), &with_reason, code).stderr;
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
    assert_eq!((state(&client).await, open(&client).await), before);
}

#[tokio::test]
async fn an_argument_that_is_none_is_wrong_use_before_anything_is_connected_to() {
    let row = ["--instruction=i", "--participant=p", "--key=k", "--rail=kafka"];
    for (arguments, words) in [
        (["run", "--tenant", "acme"].as_slice(), "invalid value 'acme'"),
        (&["trace", "x", "--limit", "0"], "--limit"),
        (&["lanes", "list", "--limit", "many"], "--limit"),
        (&["status", "--lanes", "-1"], "-1"),
        (&["policies", "--reason", "x"], "--apply"),
        (&["migrate", "--json"], "--status"),
        (&["completions", "cmd"], "cmd"),
        (&[["enqueue"].as_slice(), &row, &["--payload={"]].concat(), "--payload is not valid JSON"),
        (&[["enqueue"].as_slice(), &row, &["--payload={}", "--tenant=1"]].concat(), "--tenant"),
        (
            &[["enqueue"].as_slice(), &row, &["--payload={}", "--not-before=soon"]].concat(),
            "--not-before",
        ),
        (&["retention", "--now"], "--now"),
        (&["repare"], "repair"),
    ] {
        let message = run("postgres://127.0.0.1:1/d", arguments, 2).stderr;
        assert!(message.contains(words), "{arguments:?}: {message}");
    }
}

/// Somebody without any right may find out that there is an outbox, and no more.
#[tokio::test]
async fn a_user_without_the_right_is_told_so_and_nothing_is_done() {
    let user = User::new().await;
    let (database, client) = busy().await;
    let before = state(&client).await;
    let apply = ["policies", "--apply", "--reason", "x"];
    let row = ["--instruction=i", "--participant=p", "--key=k", "--rail=kafka", "--payload={}"];
    let enqueue = [["enqueue"].as_slice(), &row].concat();
    for arguments in COMMANDS.into_iter().chain([apply.as_slice(), &enqueue, &["migrate"]]) {
        let message = run(&user.url(&database), arguments, 1).stderr;
        let words = ["lacks a right", "nothing was changed"];
        assert!(words.iter().any(|words| message.contains(words)), "{arguments:?}: {message}");
    }
    assert_eq!(state(&client).await, before);
    // A right to look is none to act.
    let url = database.url_as("symphony_readonly").await;
    for arguments in COMMANDS.into_iter().filter(|arguments| arguments.contains(&"--reason")) {
        let message = run(&url, arguments, 1).stderr;
        assert!(
            message.contains("lacks a right") || message.contains("is not a FAILED row"),
            "{arguments:?}: {message}"
        );
    }
    assert_eq!(state(&client).await, before);
}
