//! What producers may not say, and how they are told.

use crate::calls::code;
use crate::refusals::{Call, Case, SECRET, assert_refused, let_through};
use crate::support::Database;

const TOO_LONG: &str = "repeat('x', 513)";
const CONTROL: &str = "E'a\\nb'";

fn enqueue() -> Call {
    let payload = format!("'{{\"iban\": \"{SECRET}\"}}'");
    let good = [
        ("p_instruction_id", "'i'"),
        ("p_participant_id", "'p'"),
        ("p_idempotency_key", "'k'"),
        ("p_rail_type", "'ach'"),
        ("p_payload", payload.as_str()),
    ];
    Call::new("enqueue_payment_outbox", &good)
}

fn bad_ids() -> Vec<Case> {
    let mut cases = Vec::new();
    for id in ["p_instruction_id", "p_participant_id", "p_idempotency_key"] {
        for missing in ["NULL", "''", "'   '"] {
            cases.push((id, missing, "P7101", id));
        }
        for bad in [TOO_LONG, "repeat('é', 257)", CONTROL, "E'\\x7f'", "E'a\\x01'"] {
            cases.push((id, bad, "P7102", id));
        }
    }
    cases
}

const BAD_ROWS: [Case; 31] = [
    ("p_rail_type", "NULL", "P7103", "p_rail_type null"),
    ("p_rail_type", "''", "P7103", "p_rail_type ''"),
    ("p_rail_type", "'ACH'", "P7103", "p_rail_type 'ACH'"),
    ("p_rail_type", "'9lives'", "P7103", "p_rail_type"),
    ("p_rail_type", "'a b'", "P7103", "p_rail_type"),
    ("p_rail_type", "E'ach\\n'", "P7103", "p_rail_type"),
    ("p_rail_type", "'zähler'", "P7103", "p_rail_type"),
    ("p_rail_type", "repeat('a', 64)", "P7103", "p_rail_type"),
    ("p_rail_type", "'dlq'", "P7104", "p_rail_type 'dlq' is reserved"),
    ("p_payload", "NULL", "P7105", "p_payload must be a JSON object, not null"),
    ("p_payload", "'null'", "P7105", "p_payload must be a JSON object, not JSON null"),
    ("p_payload", "'[\"TOP-SECRET\"]'", "P7105", "p_payload must be a JSON object, not array"),
    ("p_payload", "'\"TOP-SECRET\"'", "P7105", "p_payload must be a JSON object, not string"),
    ("p_payload", "'1'", "P7105", "p_payload must be a JSON object, not number"),
    ("p_payload", "'true'", "P7105", "p_payload must be a JSON object, not boolean"),
    ("p_headers", "'null'", "P7106", "p_headers"),
    ("p_headers", "'[]'", "P7106", "p_headers"),
    ("p_headers", "'\"TOP-SECRET\"'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": \"TOP-SECRET\", \"b\": 1}'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": null}'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": true}'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": {}}'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": []}'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": [\"b\"]}'", "P7106", "p_headers"),
    ("p_headers", "'{\"a\": {\"b\": \"c\"}}'", "P7106", "p_headers"),
    ("p_not_before", "'infinity'", "P7107", "p_not_before"),
    ("p_not_before", "'-infinity'", "P7107", "p_not_before"),
    ("p_not_before", "'0001-01-01'", "P7107", "p_not_before"),
    ("p_not_before", "'4000-01-01 BC'", "P7107", "p_not_before"),
    ("p_not_before", "'9999-12-31'", "P7107", "p_not_before"),
    ("p_not_before", "'1999-12-31 23:59:59+00'", "P7107", "p_not_before"),
];

fn bad_enqueues() -> Vec<Case> {
    bad_ids().into_iter().chain(BAD_ROWS).collect()
}

#[tokio::test]
async fn a_bad_row_is_refused_by_name() {
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    assert_refused(&database.connect().await, &ingest, &enqueue(), &bad_enqueues()).await;
}

#[tokio::test]
async fn a_row_at_the_limits_is_accepted() {
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    for (name, value) in [
        ("p_instruction_id", "repeat('x', 512)"),
        ("p_idempotency_key", "'ключ 鍵 🔑'"),
        ("p_rail_type", "'a' || repeat('.', 62)"),
        ("p_headers", "'{}'"),
        ("p_headers", "'{\"a\": \"\"}'"),
        ("p_not_before", "'2000-01-01 00:00:00+00'"),
    ] {
        let call = enqueue().sql(name, value).replace("'p'", &format!("'{name}'"));
        ingest.batch_execute(&call.replace("'i'", "gen_random_uuid()::text")).await.unwrap();
    }
}

#[tokio::test]
async fn without_the_look_at_the_row_bad_ones_get_in() {
    let database = Database::new().await;
    database.take_out("enqueue_payment_outbox", "IF v_fault IS NOT NULL", "IF false").await;
    let through = let_through(&database.connect().await, &enqueue(), &bad_enqueues()).await;
    // The rest runs into the constraints of the tables, whose messages show the whole row.
    for (argument, value) in [
        ("p_instruction_id", CONTROL),
        ("p_participant_id", TOO_LONG),
        ("p_idempotency_key", "'   '"),
        ("p_headers", "'{\"a\": [\"b\"]}'"),
        ("p_not_before", "'infinity'"),
    ] {
        assert!(through.contains(&format!("{argument} => {value}")), "{argument}: {through:#?}");
    }
}

#[tokio::test]
async fn a_conflict_does_not_repeat_the_payload() {
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    ingest.batch_execute(&enqueue().sql("", "")).await.unwrap();
    let other = "'{\"iban\": \"another TOP-SECRET\"}'";
    let error = ingest.batch_execute(&enqueue().sql("p_payload", other)).await.unwrap_err();
    assert_eq!(code(&error), "P7004");
    let told = error.as_db_error().unwrap();
    assert_eq!(
        told.message(),
        "idempotency key 'k' of instruction 'i' was already used with another p_payload"
    );
    let everything = format!("{:?} {:?} {:?}", told.detail(), told.hint(), told.where_());
    assert!(!everything.contains(SECRET), "{everything}");
}

fn identity() -> Call {
    let good = [("p_contact_id", "'p'"), ("p_type", "'email'"), ("p_value", "'p@example.com'")];
    Call::new("put_contact_identity", &good)
}

const BAD_IDENTITIES: [Case; 18] = [
    ("p_contact_id", "NULL", "P7101", "p_contact_id"),
    ("p_contact_id", "''", "P7101", "p_contact_id"),
    ("p_contact_id", "'  '", "P7101", "p_contact_id"),
    ("p_contact_id", TOO_LONG, "P7102", "p_contact_id"),
    ("p_contact_id", CONTROL, "P7102", "p_contact_id"),
    ("p_type", "NULL", "P7120", "p_type is null"),
    ("p_type", "''", "P7120", "p_type is ''"),
    ("p_type", "'Email'", "P7120", "p_type is 'Email'"),
    ("p_value", "NULL", "P7121", "p_value"),
    ("p_value", "''", "P7121", "p_value"),
    ("p_value", "' '", "P7121", "p_value"),
    ("p_value", "'TOP-SECRET'", "P7121", "p_value"),
    ("p_value", "'@example.com'", "P7121", "p_value"),
    ("p_value", "'TOP-SECRET@'", "P7121", "p_value"),
    ("p_value", "'a@b@c'", "P7121", "p_value"),
    ("p_value", "'a b@c'", "P7121", "p_value"),
    ("p_value", "E'a@b\\x01'", "P7121", "p_value"),
    ("p_value", "repeat('x', 512) || '@b'", "P7121", "p_value"),
];

#[tokio::test]
async fn a_bad_identity_is_refused_by_name() {
    let database = Database::new().await;
    let ingest = database.connect_as("symphony_ingest").await;
    assert_refused(&database.connect().await, &ingest, &identity(), &BAD_IDENTITIES).await;
}

#[tokio::test]
async fn without_the_look_at_the_value_bad_identities_get_in() {
    let database = Database::new().await;
    let guard = "RAISE EXCEPTION 'p_value is not";
    database.take_out("put_contact_identity", guard, "RAISE NOTICE 'p_value is not").await;
    let through = let_through(&database.connect().await, &identity(), &BAD_IDENTITIES).await;
    assert!(through.contains(&"p_value => 'a@b@c'".to_owned()), "{through:#?}");
    assert!(through.iter().all(|case| case.starts_with("p_value")), "{through:#?}");
}
