//! `trestle dlq list`, `show` and `dismiss`

use serde_json::json;
use uuid::Uuid;

use crate::scene::{assert_fits, busy, document, failed_id, open, run};
use crate::support::Database;

#[tokio::test]
async fn open_failures_are_listed_and_filtered() {
    let (database, _client) = busy().await;
    let url = database.url();
    let shown = run(&url, &["dlq", "list"], 0).stdout;
    assert_fits(&shown);
    assert_eq!(shown.lines().count(), 3, "{shown}");
    for part in ["alice", "HTTP_422", "bob", "HTTP_409"] {
        assert!(shown.contains(part), "{shown}");
    }
    for (filter, expected) in [
        (["--rail", "bank"], vec!["pay-3"]),
        (["--participant", "alice"], vec!["pay-1"]),
        (["--error-code", "HTTP_409"], vec!["pay-3"]),
        (["--error-code", "NONE"], vec![]),
        (["--since", "1h"], vec!["pay-1", "pay-3"]),
        (["--limit", "1"], vec!["pay-1"]),
    ] {
        let list = document(&url, &[["dlq", "list"], filter].concat());
        let found: Vec<_> = list["failures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["instruction_id"].clone())
            .collect();
        assert_eq!(json!(found), json!(expected), "{filter:?}");
        assert!(!list.to_string().contains("s3cret"), "{list}");
    }
}

#[tokio::test]
async fn an_empty_dlq_is_said_in_words() {
    let database = Database::new().await;
    assert_eq!(run(&database.url(), &["dlq", "list"], 0).stdout, "No FAILED row is open.\n");
    assert_eq!(document(&database.url(), &["dlq", "list"])["failures"], json!([]));
}

#[tokio::test]
async fn a_failure_is_shown_with_its_payload_only_when_asked() {
    let (database, client) = busy().await;
    let id = failed_id(&client, "pay-3").await.to_string();
    let shown = run(&database.url(), &["dlq", "show", &id], 0).stdout;
    assert_fits(&shown);
    for part in [&id, "pay-3", "HTTP_409", "halted until this row"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let plain = document(&database.url(), &["dlq", "show", &id]);
    assert!(!shown.contains("s3cret") && !plain.to_string().contains("s3cret"), "{shown}");
    assert_eq!(plain["halts_lane"], true);
    let full = run(&database.url(), &["dlq", "show", &id, "--payload"], 0).stdout;
    assert!(full.contains(r#""amount": 12345678901234567890.10"#), "{full}");
    let full = run(&database.url(), &["dlq", "show", &id, "--payload", "--json"], 0).stdout;
    assert!(full.contains(r#""amount": 12345678901234567890.10"#), "{full}");
}

#[tokio::test]
async fn a_row_that_did_not_fail_is_not_shown_as_a_failure() {
    let database = Database::new().await;
    let id = Uuid::new_v4().to_string();
    let message = run(&database.url(), &["dlq", "show", &id], 1).stderr;
    assert!(message.contains(&id) && message.contains("dlq list --all"), "{message}");
    let message = run(&database.url(), &["dlq", "show", "42"], 2).stderr;
    assert!(message.contains("42"), "{message}");
}

#[tokio::test]
async fn failures_are_dismissed_all_or_none() {
    let (database, client) = busy().await;
    let url = database.url_as("symphony_operator").await;
    let first = failed_id(&client, "pay-1").await.to_string();
    let third = failed_id(&client, "pay-3").await.to_string();
    let stranger = Uuid::max().to_string();
    let why = ["--reason", "paid by hand"];
    let half = run(&url, &[["dlq", "dismiss", &first, &stranger].as_slice(), &why].concat(), 1);
    assert!(half.stderr.contains(&stranger) && half.stderr.contains("nothing was changed"));
    assert_eq!(open(&client).await, ["pay-1", "pay-3"]);

    let both = [["dlq", "dismiss", &first, &third].as_slice(), &why].concat();
    assert_eq!(run(&url, &both, 0).stdout, "Dismissed 2 FAILED rows.\n");
    assert_eq!(open(&client).await, [""; 0]);
    assert!(run(&url, &both, 1).stderr.contains("already DISMISSED by ann"));
    let shown = document(&url, &["dlq", "show", &first]);
    assert_eq!(shown["resolved_reason"], "paid by hand");
    let all = run(&url, &["dlq", "list", "--all"], 0).stdout;
    assert!(all.contains("dismissed"), "{all}");
}

#[tokio::test]
async fn a_dismissal_without_rows_or_reason_is_wrong_use() {
    let id = Uuid::nil().to_string();
    for wrong in [
        vec!["dlq", "dismiss", "--reason", "x"],
        vec!["dlq", "dismiss", &id],
        vec!["dlq", "dismiss", &id, "--reason", ""],
        vec!["dlq", "dismiss", "nope", "--reason", "x"],
        vec!["dlq", "list", "--since", "yesterday"],
        vec!["dlq"],
    ] {
        run("postgres://127.0.0.1:1/d", &wrong, 2);
    }
}
