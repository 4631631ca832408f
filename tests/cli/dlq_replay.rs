//! `trestle dlq replay`

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::scene::{assert_fits, busy, document, fail, failed_id, open, run};
use crate::support::Database;

const WHY: [&str; 2] = ["--reason", "the account is open"];

fn replay<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [["dlq", "replay"].as_slice(), more, &WHY].concat()
}

#[tokio::test]
async fn a_preview_says_what_is_superseded_and_in_which_order_and_does_nothing() {
    let (database, client) = busy().await;
    let shown = run(&database.url(), &replay(&["--since", "1h", "--preview"]), 0).stdout;
    assert_fits(&shown);
    for part in [
        "Rows: 2; participants: 2 (alice 1, bob 1)",
        "Superseded by a later row: 1 in the lane (delivered), 1 in the instruction",
        "Idempotency window of bank: not known",
        "first in its lane",
        "nothing was replayed",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let preview = document(&database.url(), &replay(&["--since", "1h", "--preview"]));
    let rows: Vec<_> = preview["preview"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([
                row["instruction_id"],
                row["superseded"],
                row["halts_lane"],
                row["waiting_in_lane"]
            ])
        })
        .collect();
    assert_eq!(rows, [json!(["pay-1", true, false, 1]), json!(["pay-3", false, true, 1])]);
    assert_eq!(open(&client).await, ["pay-1", "pay-3"]);
}

#[tokio::test]
async fn rows_are_replayed_by_filter_in_the_order_of_the_preview() {
    let (database, client) = busy().await;
    let url = database.url_as("symphony_operator").await;
    let shown = run(&url, &replay(&["--since", "1h", "--yes"]), 0).stdout;
    assert_fits(&shown);
    assert!(shown.ends_with("Replayed 2 of 2 rows.\n"), "{shown}");
    let again = run(&url, &replay(&["--since", "1h", "--yes"]), 0).stdout;
    assert_eq!(again, "Nothing to replay: no open FAILED row matches.\n");
    let replays = "SELECT string_agg(concat_ws(' ', instruction_id, sequence_id), ', ' ORDER BY outbox_id) \
                   FROM outbox.payment_outbox_pending WHERE replay_of IS NOT NULL";
    let replays: String = client.query_one(replays, &[]).await.unwrap().get(0);
    assert_eq!(replays, "pay-1 4, pay-3 1", "a new number, and that of the row that halted");
    let by = "SELECT DISTINCT resolved_by || ': ' || resolved_reason FROM outbox.payment_outbox_failures";
    let by: String = client.query_one(by, &[]).await.unwrap().get(0);
    assert_eq!(by, "ann: the account is open");
}

#[tokio::test]
async fn rows_are_replayed_by_id_all_that_were_named_or_none() {
    let (database, client) = busy().await;
    let first = failed_id(&client, "pay-1").await.to_string();
    let stranger = Uuid::max().to_string();
    let refused = run(&database.url(), &replay(&[&first, &stranger, "--yes"]), 1).stderr;
    assert!(refused.contains(&format!("{stranger} is not a FAILED row")), "{refused}");
    assert_eq!(open(&client).await, ["pay-1", "pay-3"]);
    let done = document(&database.url(), &replay(&[&first, "--yes"]));
    assert_eq!(done["replayed"][0]["replay_of"], first);
    assert_eq!(open(&client).await, ["pay-3"]);
    let refused = run(&database.url(), &replay(&[&first, "--yes"]), 1).stderr;
    assert!(refused.contains("was already REPLAYED"), "{refused}");
}

#[tokio::test]
async fn where_nobody_can_be_asked_nothing_is_replayed_without_yes() {
    let (database, client) = busy().await;
    let refused = run(&database.url(), &replay(&["--rail", "bank"]), 2);
    assert!(refused.stdout.contains("Rows: 1"), "the preview comes first: {}", refused.stdout);
    assert!(refused.stderr.contains("add --yes"), "{}", refused.stderr);
    assert_eq!(open(&client).await, ["pay-1", "pay-3"]);
}

#[test]
fn rows_must_be_named_in_one_way() {
    let id = Uuid::nil().to_string();
    for (wrong, expected) in [
        (replay(&["--yes"]), "--participant"),
        (replay(&[&id, "--rail", "bank", "--yes"]), "not by both"),
        (replay(&[&id, "--json"]), "--preview"),
        (replay(&[&id, "--yes", "--rate", "0"]), "--rate"),
        (replay(&[&id, "--yes", "--preview"]), "--preview"),
        (vec!["dlq", "replay", &id, "--yes"], "--reason"),
    ] {
        let message = run("postgres://127.0.0.1:1/d", &wrong, 2).stderr;
        assert!(message.contains(expected), "{wrong:?}: {message}");
    }
}

#[tokio::test]
async fn a_key_that_the_receiver_may_have_forgotten_needs_its_own_flag() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    fail(&client, &[("old", "alice", "bank")]).await;
    database.advance(Duration::from_secs(7_200)).await;
    fail(&client, &[("new", "bob", "bank"), ("free", "bob", "kafka")]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trestle.toml");
    let rail = "[rails.bank]\nkind = \"http\"\nurl = \"https://bank.example/p\"\nidempotency_ttl_seconds = 3600\n";
    std::fs::write(&file, rail).unwrap();
    let config = ["--participant", "alice", "--yes", "--config", file.to_str().unwrap()];
    let refused = run(&database.url(), &replay(&config), 1);
    assert!(refused.stdout.contains("Idempotency window of bank: 3600 s; past it: 1"));
    assert!(refused.stderr.contains("--past-window"), "{}", refused.stderr);
    assert_eq!(open(&client).await, ["free", "new", "old"]);
    let young = ["--participant", "bob", "--yes", "--config", file.to_str().unwrap()];
    run(&database.url(), &replay(&young), 0);
    run(&database.url(), &replay(&[config.as_slice(), &["--past-window"]].concat()), 0);
    assert_eq!(open(&client).await, [""; 0]);
}

/// A replay of everything at a row in a second.
fn slow_replay(database: &Database) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
        .args(replay(&["--since", "1h", "--yes", "--rate", "1"]))
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("DATABASE_URL", database.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

async fn until_open(client: &Client, count: usize) {
    while open(client).await.len() > count {
        tokio::task::yield_now().await;
    }
}

const THREE: [(&str, &str, &str); 3] =
    [("pay-1", "a", "kafka"), ("pay-2", "b", "kafka"), ("pay-3", "c", "kafka")];

#[tokio::test]
async fn what_fails_after_the_preview_is_not_replayed_and_what_is_resolved_is_told() {
    let database = Database::new().await;
    let client = database.connect().await;
    fail(&client, &THREE).await;
    let child = slow_replay(&database);
    until_open(&client, 2).await;
    let dismiss = "SELECT outbox.dismiss_failed_outbox($1, 'eve', 'paid')";
    client.execute(dismiss, &[&failed_id(&client, "pay-3").await]).await.unwrap();
    fail(&client, &[("late", "b", "kafka")]).await;
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("already DISMISSED by eve"), "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("Replayed 2 of 3 rows.\n"));
    assert_eq!(open(&client).await, ["late"]);
}

#[tokio::test]
async fn a_replay_that_is_stopped_says_how_far_it_came() {
    for interrupt in [true, false] {
        let database = Database::new().await;
        let client = database.connect().await;
        fail(&client, &THREE).await;
        let child = slow_replay(&database);
        until_open(&client, 2).await;
        if interrupt {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        } else {
            let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
                       WHERE datname = current_database() AND application_name = 'trestle'";
            client.query_one(end, &[]).await.unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("stopped after 1 of 3 rows"), "{told}");
        assert_eq!(told.contains("connection to the database was lost"), !interrupt, "{told}");
        assert_eq!(open(&client).await, ["pay-2", "pay-3"]);
    }
}

#[tokio::test]
async fn on_a_terminal_the_operator_is_asked() {
    let database = Database::new().await;
    let client = database.connect().await;
    fail(&client, &[("pay-1", "alice", "kafka")]).await;
    for (answer, said) in [("n", "Nothing was replayed."), ("y", "Replayed 1 of 1 rows.")] {
        let trestle = assert_cmd::cargo::cargo_bin!("trestle").display();
        let command = format!("{trestle} dlq replay --rail kafka --reason open");
        // util-linux's script gives the command a terminal.
        let mut child = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .env("DATABASE_URL", database.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keyboard = child.stdin.take().unwrap();
        writeln!(keyboard, "{answer}").unwrap();
        let output = child.wait_with_output().unwrap();
        drop(keyboard);
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(shown.contains("Replay these 1 rows? [y/N]") && shown.contains(said), "{shown}");
        assert_eq!(output.status.code(), Some(0), "{shown}");
    }
    assert_eq!(open(&client).await, [""; 0]);
}
