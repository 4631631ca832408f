//! `trestle trace`

use serde_json::json;

use crate::scene::{assert_fits, busy, claim, complete, document, failed_id, run};
use crate::support::Database;

fn happened(document: &serde_json::Value) -> Vec<String> {
    let entries = document["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["what"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_life_of_a_payment_goes_from_the_first_row_to_its_replay() {
    let (database, client) = busy().await;
    let url = database.url();
    let id = failed_id(&client, "pay-3").await.to_string();
    run(&url, &["dlq", "replay", &id, "--reason", "open", "--yes"], 0);
    claim(&client).await;
    complete(&client, "pay-3", "DISPATCHED", None).await;
    let trace = document(&url, &["trace", &id]);
    assert_eq!(trace["kind"], "outbox");
    let what = happened(&trace);
    let expected = [
        "enqueued",
        "leased",
        "FAILED",
        "dead letter",
        "lane halted",
        "enqueued as replay",
        "failed replayed",
        "leased",
        "leased",
        "DISPATCHED",
    ];
    assert_eq!(what, expected);
    let last = trace["entries"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        json!([last["rail_reference"], last["latency_ms"], last["attempt_no"], last["actor"]]),
        json!(["receipt-7", 12, 1, "worker-1"])
    );
    // The replay and the dead letter lead to the same payment.
    for entry in trace["entries"].as_array().unwrap() {
        let row = entry["outbox_id"].as_str().unwrap();
        assert_eq!(happened(&document(&url, &["trace", row])).len(), expected.len());
    }
    let shown = run(&url, &["trace", &id], 0).stdout;
    assert_fits(&shown);
    for part in ["r3", "receipt receipt-7", "12 ms", "by ann", "HTTP_409"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("s3cret") && !trace.to_string().contains("s3cret"), "{shown}");
}

#[tokio::test]
async fn an_instruction_has_all_its_keys_and_a_participant_all_its_rows() {
    let (database, _client) = busy().await;
    let instruction = document(&database.url(), &["trace", "pay-1"]);
    assert_eq!(instruction["kind"], "instruction");
    let enqueued = happened(&instruction).iter().filter(|what| *what == "enqueued").count();
    assert_eq!(enqueued, 2);
    let participant = document(&database.url(), &["trace", "alice"]);
    assert_eq!(participant["kind"], "participant");
    let enqueued = happened(&participant).iter().filter(|what| *what == "enqueued").count();
    assert_eq!(enqueued, 3);
    assert_fits(&run(&database.url(), &["trace", "alice"], 0).stdout);
    let limited = document(&database.url(), &["trace", "alice", "--limit", "1"]);
    assert_eq!(limited["truncated"], true);
}

#[tokio::test]
async fn pauses_and_repairs_are_part_of_a_rows_life() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    crate::scene::enqueue(&client, "pay-1", "alice", "kafka").await;
    claim(&client).await;
    database.advance(std::time::Duration::from_secs(120)).await;
    let url = database.url();
    let repaired = run(&url, &["repair"], 0).stdout;
    assert_fits(&repaired);
    assert!(repaired.contains("alice") && repaired.contains("1 rows will be claimed again"));
    let pause = "SELECT outbox.pause_outbox_lane('alice', 'kafka', 'ops', 'review')";
    client.batch_execute(pause).await.unwrap();
    let what = happened(&document(&url, &["trace", "pay-1"]));
    assert_eq!(what, ["enqueued", "leased", "ZOMBIE_REQUEUE", "lane paused"]);
}

#[tokio::test]
async fn an_auditor_may_trace() {
    let (database, _client) = busy().await;
    for role in ["symphony_operator", "symphony_readonly", "symphony_auditor"] {
        run(&database.url_as(role).await, &["trace", "pay-1"], 0);
    }
}

#[tokio::test]
async fn what_nobody_knows_is_said_with_what_would_be_right() {
    let database = Database::new().await;
    for id in ["nobody", "01a1e443-c8c2-7c0c-81c7-1a7144d77994", "", "a'b\u{1b}"] {
        let message = run(&database.url(), &["trace", id], 1).stderr;
        assert!(message.contains("outbox_id, instruction_id or participant_id"), "{message}");
        assert!(!message.contains('\u{1b}'), "{message}");
    }
    run(&database.url(), &["trace", "x", "--as", "rail"], 2);
    run(&database.url(), &["trace"], 2);
}
