//! What producers may not say in a batch, and that the good rows do not suffer for it.

use crate::refusals::{Call, Case, SECRET, assert_refused, wrong};
use crate::support::Database;

fn row(instruction: &str, extra: &str) -> String {
    format!(
        "{{\"instruction_id\": \"{instruction}\", \"participant_id\": \"p\", \"idempotency_key\": \"k\", \
          \"rail_type\": \"ach\", \"payload\": {{\"iban\": \"{SECRET}\"}}{extra}}}"
    )
}

fn batch() -> Call {
    Call::new("enqueue_payment_outbox_batch", &[("p_rows", &format!("'[{}]'", row("good", "")))])
}

const NOT_A_BATCH: [Case; 5] = [
    ("p_rows", "NULL", "P7108", "p_rows must be a JSON array of rows, not null"),
    ("p_rows", "'null'", "P7108", "p_rows"),
    (
        "p_rows",
        "'{\"iban\": \"TOP-SECRET\"}'",
        "P7108",
        "p_rows must be a JSON array of rows, not object",
    ),
    ("p_rows", "'\"TOP-SECRET\"'", "P7108", "p_rows"),
    ("p_rows", "'1'", "P7108", "p_rows"),
];

/// A key that is added to a good row (the last one of a name counts), the SQLSTATE, and what is said.
const BAD_KEYS: [(&str, &str, &str); 31] = [
    ("\"TOP_SECRETS\": 1", "P7108", "unknown key \"TOP_SECRETS\""),
    ("\"instruction_id\": 7", "P7108", "instruction_id must be a JSON string, not number"),
    ("\"participant_id\": {}", "P7108", "participant_id must be a JSON string, not object"),
    ("\"idempotency_key\": [\"k\"]", "P7108", "idempotency_key must be a JSON string, not array"),
    ("\"rail_type\": true", "P7108", "rail_type must be a JSON string, not boolean"),
    ("\"tenant_id\": 1", "P7108", "tenant_id must be a JSON string, not number"),
    ("\"tenant_id\": \"not-a-uuid\"", "P7108", "tenant_id must be a UUID"),
    ("\"tenant_id\": \"\"", "P7108", "tenant_id must be a UUID"),
    ("\"not_before\": 1", "P7108", "not_before must be a JSON string, not number"),
    ("\"not_before\": \"soon\"", "P7107", "p_not_before is not a timestamp"),
    ("\"not_before\": \"2026-02-30\"", "P7107", "p_not_before is not a timestamp"),
    ("\"not_before\": \"\"", "P7107", "p_not_before is not a timestamp"),
    ("\"not_before\": \"99999999-01-01\"", "P7107", "p_not_before is not a timestamp"),
    ("\"not_before\": \"infinity\"", "P7107", "p_not_before infinity"),
    ("\"not_before\": \"0001-01-01\"", "P7107", "p_not_before"),
    ("\"not_before\": \"9999-12-31\"", "P7107", "p_not_before"),
    ("\"instruction_id\": null", "P7101", "p_instruction_id is null"),
    ("\"participant_id\": \"\"", "P7101", "p_participant_id is empty"),
    ("\"idempotency_key\": \" \"", "P7101", "p_idempotency_key is empty"),
    ("\"instruction_id\": \"a\\u0001b\"", "P7102", "p_instruction_id"),
    ("\"participant_id\": \"a\\nb\"", "P7102", "p_participant_id"),
    ("\"rail_type\": null", "P7103", "p_rail_type null"),
    ("\"rail_type\": \"ACH\"", "P7103", "p_rail_type 'ACH'"),
    ("\"rail_type\": \"dlq\"", "P7104", "p_rail_type 'dlq' is reserved"),
    ("\"payload\": null", "P7105", "p_payload must be a JSON object, not JSON null"),
    ("\"payload\": [\"TOP-SECRET\"]", "P7105", "p_payload must be a JSON object, not array"),
    ("\"payload\": \"TOP-SECRET\"", "P7105", "p_payload must be a JSON object, not string"),
    ("\"headers\": []", "P7106", "p_headers"),
    ("\"headers\": {\"a\": 1}", "P7106", "p_headers"),
    ("\"headers\": {\"a\": [\"TOP-SECRET\"]}", "P7106", "p_headers"),
    ("\"headers\": {\"a\": null}", "P7106", "p_headers"),
];

/// Second in its batch, behind a good row.
fn bad_rows() -> Vec<Case> {
    let keep = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let mut cases = NOT_A_BATCH.to_vec();
    for (key, sqlstate, says) in BAD_KEYS {
        let rows = format!("'[{}, {}]'", row("good", ""), row("bad", &format!(", {key}")));
        cases.push(("p_rows", keep(rows), sqlstate, keep(format!("row 2 of p_rows: {says}"))));
    }
    for (element, kind) in
        [("1", "number"), ("null", "null"), ("[]", "array"), ("\"TOP-SECRET\"", "string")]
    {
        let rows = format!("'[{}, {element}]'", row("good", ""));
        let says = format!("row 2 of p_rows: a row must be a JSON object, not {kind}");
        cases.push(("p_rows", keep(rows), "P7108", keep(says)));
    }
    cases
}

#[tokio::test]
async fn a_bad_row_of_a_batch_is_refused_by_number_and_name() {
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    assert_refused(&database.connect().await, &ingest, &batch(), &bad_rows()).await;
}

#[tokio::test]
async fn without_the_look_at_the_rows_a_batch_is_not_refused_so() {
    let database = Database::new().await;
    database
        .take_out("enqueue_batch_faults", "outbox.enqueue_batch_fault(r.j)", "NULL::text[]")
        .await;
    let wrong = wrong(&database.connect().await, &batch(), &bad_rows()).await;
    assert_eq!(wrong.len(), bad_rows().len() - NOT_A_BATCH.len(), "{wrong:#?}");
}

#[tokio::test]
async fn bad_rows_are_reported_and_the_good_ones_enqueued() {
    const CALL: &str = "SELECT row_no, is_new, outbox_id IS NOT NULL, error_code, error_message \
        FROM outbox.enqueue_payment_outbox_batch($1::text::jsonb, true)";
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    let mut rows: Vec<_> =
        BAD_KEYS.iter().map(|(key, ..)| row("bad", &format!(", {key}"))).collect();
    rows.push(row("good", ""));
    let told = ingest.query(CALL, &[&format!("[{}]", rows.join(","))]).await.unwrap();
    assert_eq!(told.len(), rows.len());
    for (n, (bad, (key, sqlstate, says))) in told.iter().zip(BAD_KEYS).enumerate() {
        assert_eq!(bad.get::<_, i32>(0), i32::try_from(n).unwrap() + 1);
        assert_eq!((bad.get(1), bad.get(2)), (false, false), "{key}");
        assert_eq!(bad.get::<_, &str>(3), sqlstate, "{key}");
        let message: &str = bad.get(4);
        assert!(message.starts_with(says) && !message.contains(SECRET), "{key}: {message}");
    }
    let good = told.last().unwrap();
    assert_eq!((good.get(1), good.get(2), good.get::<_, Option<&str>>(3)), (true, true, None));
    let pending = "SELECT string_agg(instruction_id, ',') FROM outbox.payment_outbox_pending";
    let pending: String = database.connect().await.query_one(pending, &[]).await.unwrap().get(0);
    assert_eq!(pending, "good");
}

#[tokio::test]
async fn an_empty_batch_is_no_fault() {
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    let rows = ingest.query("SELECT FROM outbox.enqueue_payment_outbox_batch('[]')", &[]).await;
    assert_eq!(rows.unwrap().len(), 0);
}
