//! A reader that has seen enough, and a terminal that closes: neither is a reason to panic.

use std::process::{Command, Stdio};

use crate::scene::{busy, failed_id};
use crate::support::Database;

/// Runs a command whose output nobody reads any more, from before its first word on.
fn unread(url: &str, arguments: &[&str], stderr_too: bool) -> i32 {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("trestle"));
    let mut child = command
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("DATABASE_URL", url)
        .env("USER", "ann")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(if stderr_too { Stdio::piped() } else { Stdio::inherit() })
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    child.wait().unwrap().code().expect("no signal")
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_failure() {
    let (database, client) = busy().await;
    let id = failed_id(&client, "pay-1").await.to_string();
    let reads: [&[&str]; 14] = [
        &["status"],
        &["status", "--watch"],
        &["status", "--watch", "--json"],
        &["trace", "alice"],
        &["trace", "alice", "--json"],
        &["lanes", "list", "--all"],
        &["dlq", "list", "--json"],
        &["dlq", "show", &id, "--payload"],
        &["dlq", "replay", &id, "--reason", "x", "--preview"],
        &["policies"],
        &["config"],
        &["migrate", "--status"],
        &["completions", "zsh"],
        &["--help"],
    ];
    for arguments in reads {
        assert_eq!(unread(&database.url(), arguments, true), 0, "{arguments:?}");
    }
}

/// What was asked for is done, whether anybody reads that it is.
#[tokio::test]
async fn an_act_is_done_although_nobody_reads_its_answer() {
    let (database, client) = busy().await;
    let (first, third) = (failed_id(&client, "pay-1").await, failed_id(&client, "pay-3").await);
    let (first, third) = (first.to_string(), third.to_string());
    let row = ["--instruction=i", "--participant=p", "--key=k", "--rail=kafka", "--payload={}"];
    let acts: [&[&str]; 8] = [
        &["lanes", "pause", "dave", "kafka", "--reason", "x"],
        &["lanes", "resume", "dave", "kafka", "--reason", "x"],
        &["dlq", "replay", &first, "--reason", "x", "--yes"],
        &["dlq", "dismiss", &third, "--reason", "x"],
        &["repair"],
        &["retention"],
        &["migrate"],
        &[["enqueue"].as_slice(), &row].concat(),
    ];
    for arguments in acts {
        assert_eq!(unread(&database.url(), arguments, true), 0, "{arguments:?}");
    }
    assert_eq!(crate::scene::open(&client).await, [""; 0]);
    let there = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE instruction_id = 'i'";
    assert_eq!(client.query_one(there, &[]).await.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test]
async fn an_error_that_nobody_reads_still_has_its_code() {
    let database = Database::new().await;
    for (arguments, code) in [
        (["trace", "nobody"].as_slice(), 1),
        (&["dlq", "show", "42"], 2),
        (&["lanes", "resume", "nobody", "kafka", "--reason", "x"], 1),
        (&["dlq", "dismiss", "--reason", "x"], 2),
        (&["config", "--config", "no-such.toml"], 2),
    ] {
        assert_eq!(unread(&database.url(), arguments, true), code, "{arguments:?}");
    }
}
