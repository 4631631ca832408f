//! An outbox in which something has happened, and the commands run on it.

use serde_json::Value;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::{Database, trestle};

/// What a command printed.
pub(crate) struct Run {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a command that must end with `code`.
pub(crate) fn run(url: &str, arguments: &[&str], code: i32) -> Run {
    let (run, ended) = run_at_all(url, arguments);
    assert_eq!(ended, code, "{arguments:?}: {}{}", run.stdout, run.stderr);
    run
}

/// Runs a command, and says how it ended.
pub(crate) fn run_at_all(url: &str, arguments: &[&str]) -> (Run, i32) {
    let output = trestle(url, arguments).env("USER", "ann").output().unwrap();
    let run = Run {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    assert!(!run.stdout.contains('\u{1b}'), "colour: {}", run.stdout);
    (run, output.status.code().expect("it ended by itself"))
}

/// The JSON document that a command prints.
pub(crate) fn document(url: &str, arguments: &[&str]) -> Value {
    let run = run(url, &[arguments, &["--json"]].concat(), 0);
    let document: Value = serde_json::from_str(&run.stdout).expect("one JSON document");
    assert_eq!(document["version"], 1, "{document}");
    document
}

pub(crate) fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "longer than 80 columns: {line}");
    }
}

/// Enqueues a row with a secret payload.
pub(crate) async fn enqueue(client: &Client, instruction: &str, participant: &str, rail: &str) {
    enqueue_key(client, instruction, "k1", participant, rail).await;
}

pub(crate) async fn enqueue_key(
    client: &Client,
    instruction: &str,
    key: &str,
    participant: &str,
    rail: &str,
) {
    const CALL: &str = "SELECT FROM outbox.enqueue_payment_outbox($1, $2, $3, $4, \
        '{\"amount\": 12345678901234567890.10, \"iban\": \"s3cret\"}')";
    client.execute(CALL, &[&instruction, &participant, &key, &rail]).await.unwrap();
}

/// Claims everything that is due, as `worker-1`, for a minute.
pub(crate) async fn claim(client: &Client) {
    client
        .batch_execute(
            "DROP TABLE IF EXISTS claimed; CREATE TEMP TABLE claimed AS \
             SELECT * FROM outbox.claim_outbox_batch(100, 'worker-1', 60)",
        )
        .await
        .unwrap();
}

/// The outcome of a row that was claimed.
pub(crate) async fn complete(client: &Client, instruction: &str, state: &str, code: Option<&str>) {
    const CALL: &str = "SELECT FROM claimed AS c, outbox.complete_outbox_attempt(c.outbox_id, \
        c.lease_token, 'worker-1', $2::text::outbox.outbox_attempt_state, p_error_code => $3::text, \
        p_error_message => CASE WHEN $3::text IS NOT NULL THEN E'no\\n\\x1b[2J' END, \
        p_rail_reference => CASE $2::text WHEN 'DISPATCHED' THEN 'receipt-7' END, p_latency_ms => 12, \
        p_retry_delay_seconds => CASE $2::text WHEN 'RETRYABLE' THEN 600 END) \
        WHERE c.instruction_id = $1 AND c.rail_type <> 'dlq'";
    client.execute(CALL, &[&instruction, &state, &code]).await.unwrap();
}

/// Rows that failed on a rail that goes on, one for each participant.
pub(crate) async fn fail(client: &Client, rows: &[(&str, &str, &str)]) {
    for (instruction, participant, rail) in rows {
        enqueue(client, instruction, participant, rail).await;
    }
    claim(client).await;
    for (instruction, _, _) in rows {
        complete(client, instruction, "FAILED", Some("HTTP_422")).await;
    }
}

/// The FAILED row of an instruction.
pub(crate) async fn failed_id(client: &Client, instruction: &str) -> Uuid {
    const QUERY: &str = "SELECT outbox_id FROM outbox.payment_outbox_attempts \
        WHERE instruction_id = $1 AND state = 'FAILED'";
    client.query_one(QUERY, &[&instruction]).await.unwrap().get(0)
}

pub(crate) async fn halting(client: &Client, rail: &str) {
    let policies = serde_json::json!({ rail: { "on_failed": "halt" } });
    let set = "SELECT outbox.set_rail_policies($1, 'test', 'test')";
    client.execute(set, &[&policies]).await.unwrap();
}

/// Open failures, by instruction.
pub(crate) async fn open(client: &Client) -> Vec<String> {
    const QUERY: &str = "SELECT instruction_id FROM outbox.outbox_failure_status \
        WHERE resolution IS NULL ORDER BY 1";
    client.query(QUERY, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Something of everything: bob's lane is halted, erin's paused, carol waits for another try, dave's
/// row is leased; alice has a FAILED row that a later one has overtaken.
pub(crate) async fn busy() -> (Database, Client) {
    let database = Database::new().await;
    let client = database.connect().await;
    halting(&client, "bank").await;
    for (instruction, participant, rail) in [
        ("pay-1", "alice", "kafka"),
        ("pay-2", "alice", "kafka"),
        ("pay-3", "bob", "bank"),
        ("pay-4", "bob", "bank"),
        ("pay-5", "carol", "kafka"),
        ("pay-6", "dave", "kafka"),
    ] {
        enqueue(&client, instruction, participant, rail).await;
    }
    claim(&client).await;
    complete(&client, "pay-1", "FAILED", Some("HTTP_422")).await;
    complete(&client, "pay-2", "DISPATCHED", None).await;
    complete(&client, "pay-3", "FAILED", Some("HTTP_409")).await;
    complete(&client, "pay-5", "RETRYABLE", Some("HTTP_503")).await;
    let pause = "SELECT outbox.pause_outbox_lane('erin', 'kafka', 'ops', 'under review')";
    client.batch_execute(pause).await.unwrap();
    enqueue_key(&client, "pay-1", "k2", "alice", "kafka").await;
    (database, client)
}
