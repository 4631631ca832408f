//! `trestle status`

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::scene::{assert_fits, busy, document, run};
use crate::support::Database;

#[tokio::test]
async fn an_empty_outbox_has_nothing_pending() {
    let database = Database::new().await;
    let shown = run(&database.url(), &["status"], 0).stdout;
    assert_eq!(shown, "0 pending; 0 FAILED are open\n");
    let document = document(&database.url(), &["status"]);
    assert_eq!(document["pending_depth"], 0);
    assert_eq!(document["rails"], json!([]));
}

#[tokio::test]
async fn depth_rails_waiting_lanes_and_workers_are_shown() {
    let (database, _client) = busy().await;
    let shown = run(&database.url(), &["status"], 0).stdout;
    assert_fits(&shown);
    assert!(shown.starts_with("6 pending, the oldest "), "{shown}");
    for part in [
        "2 FAILED are open",
        "for FAILED",
        "by ops: under review",
        "HTTP_503 at attempt 1",
        "worker-1",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("s3cret"), "{shown}");
    let document = document(&database.url(), &["status"]);
    let rails: Vec<_> = document["rails"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rail| {
            json!([rail["rail_type"], rail["pending"], rail["due"], rail["leased"], rail["failed"]])
        })
        .collect();
    assert_eq!(
        rails,
        [json!(["bank", 1, 1, 0, 1]), json!(["dlq", 2, 2, 0, 0]), json!(["kafka", 3, 1, 1, 1]),]
    );
    let waiting: Vec<_> = document["waiting_lanes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lane| json!([lane["participant_id"], lane["state"]]))
        .collect();
    assert_eq!(
        waiting,
        [json!(["bob", "halted"]), json!(["erin", "paused"]), json!(["carol", "delayed"])]
    );
    assert_eq!(document["workers"][0]["worker_id"], "worker-1");
    assert_eq!(document["workers"][0]["leased_lanes"], 1);
}

/// One that holds no lease, one that died, and one that holds leases and never said that it is there.
#[tokio::test]
async fn each_worker_is_shown_with_when_it_was_last_seen() {
    let (database, client) = busy().await;
    let note = "SELECT outbox.note_worker('idle', '{bank,kafka}'), outbox.note_worker('lost', '{bank}');
        UPDATE outbox.payment_outbox_workers SET started_at = now() - interval '9 min',
          seen_at = now() - interval '5 min', live_until = now() - interval '4 min' WHERE worker_id = 'lost'";
    client.batch_execute(note).await.unwrap();
    let shown = run(&database.url(), &["status"], 0).stdout;
    assert_fits(&shown);
    let worker = |name: &str| -> Vec<String> {
        let line = shown.lines().find(|line| line.trim().starts_with(name));
        line.unwrap_or_else(|| panic!("no {name}: {shown}"))
            .split("  ")
            .filter(|cell| !cell.trim().is_empty())
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    assert_eq!(worker("idle"), ["idle", "bank,kafka", "live", "0", "-"]);
    assert_eq!(worker("lost"), ["lost", "bank", "5 min ago", "0", "-"]);
    assert_eq!(worker("worker-1")[..4], ["worker-1", "kafka", "never", "1"]);
    let document = document(&database.url(), &["status"]);
    assert_eq!(document["workers"][0]["live"], true);
    assert_eq!(document["workers"][0]["first_expiry_at"], json!(null));
    assert_eq!(document["workers"][2]["seen_at"], json!(null));
}

#[tokio::test]
async fn who_may_only_read_sees_it_too() {
    let (database, _client) = busy().await;
    for role in ["symphony_operator", "symphony_readonly", "symphony_auditor"] {
        let url = database.url_as(role).await;
        assert_eq!(document(&url, &["status"])["pending_depth"], 6, "{role}");
    }
    let url = database.url_as("symphony_ingest").await;
    assert!(run(&url, &["status"], 1).stderr.contains("lacks a right"));
}

fn watch(url: &str) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
        .args(["status", "--watch", "--json"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("DATABASE_URL", url)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn first_line(child: &mut Child) -> BufReader<std::process::ChildStdout> {
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let first: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(first["version"], 1);
    stdout
}

#[tokio::test]
async fn watching_ends_with_an_interrupt_or_with_its_reader() {
    let database = Database::new().await;
    let mut child = watch(&database.url());
    let mut stdout = first_line(&mut child);
    let mut second = String::new();
    stdout.read_line(&mut second).unwrap();
    assert!(second.starts_with('{'), "{second}");
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));

    let mut child = watch(&database.url());
    drop(first_line(&mut child));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[tokio::test]
async fn a_database_that_goes_away_while_it_is_watched_is_a_failure() {
    let database = Database::new().await;
    let client = database.connect().await;
    let mut child = watch(&database.url());
    let stdout = first_line(&mut child);
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'trestle'";
    client.query_one(end, &[]).await.unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdout);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("connection to the database was lost"), "{message}");
}
