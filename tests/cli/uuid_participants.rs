//! Participants whose names are as long as the ids of their rows.

use std::time::Duration;

use crate::scene::{assert_fits, claim, enqueue, fail, failed_id, run};
use crate::support::Database;

const ANN: &str = "5f0c0c52-7d5f-4d27-9f0f-3a1f5f6a7b8c";
const BEN: &str = "0b6f1f0e-52b0-4b8e-8a6e-2f1d3c4b5a69";

/// What a command shows: it fits, and has the id in one piece.
fn shown(url: &str, arguments: &[&str], id: &str) -> String {
    let shown = run(url, arguments, 0).stdout;
    assert_fits(&shown);
    assert!(shown.contains(id), "{id} is not whole: {shown}");
    shown
}

#[tokio::test]
async fn failed_rows_of_uuids_fit_eighty_columns_and_keep_their_ids() {
    let database = Database::new().await;
    let (client, url) = (database.connect().await, database.url());
    fail(&client, &[("pay-1", ANN, "kafka"), ("pay-2", BEN, "kafka")]).await;
    let id = failed_id(&client, "pay-1").await.to_string();
    shown(&url, &["dlq", "list"], &id);
    shown(&url, &["dlq", "show", &id], &id);
    shown(&url, &["trace", &id], &id);
    let replay = ["dlq", "replay", "--rail", "kafka", "--reason", "why"];
    let preview = shown(&url, &[&replay[..], &["--preview"]].concat(), &id);
    assert!(preview.contains(&format!("{ANN} 1")), "{preview}");
    shown(&url, &[&replay[..], &["--yes"]].concat(), &id);
    shown(&url, &["status"], "kafka");
}

#[tokio::test]
async fn repaired_rows_of_uuids_fit_eighty_columns_and_keep_their_ids() {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "pay-1", ANN, "kafka").await;
    claim(&client).await;
    database.advance(Duration::from_secs(120)).await;
    let id = "SELECT outbox_id::text FROM outbox.payment_outbox_pending";
    let id: String = client.query_one(id, &[]).await.unwrap().get(0);
    shown(&database.url(), &["lanes", "list", "--all"], "kafka");
    shown(&database.url(), &["repair"], &id);
}
