//! The schemas that come with Trestle. They are part of the binary; nothing is read at run time.
//!
//! A bridge validates payloads by the two of payments. The other two tell users what to expect: the SQL functions decide
//! what is enqueued and what a dead letter carries, and tests compare the schemas with both.

/// A row as it is enqueued. A description: nothing is validated against it.
pub const ENVELOPE: &str = include_str!("../../schemas/envelope.json");
/// The payload of a Kafka rail with `schema = "payment"`.
pub const KAFKA_PAYMENT: &str = include_str!("../../schemas/kafka-payment.json");
/// The payload of an HTTP rail with `schema = "payment"`.
pub const HTTP_PAYMENT: &str = include_str!("../../schemas/http-payment.json");
/// A record of the DLQ topic. A description for its consumers: nothing is validated against it but, in tests, real records.
pub const DLQ_RECORD: &str = include_str!("../../schemas/dlq-record.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::*;

    const ALL: [&str; 4] = [ENVELOPE, KAFKA_PAYMENT, HTTP_PAYMENT, DLQ_RECORD];

    fn parse(schema: &str) -> Value {
        serde_json::from_str(schema).unwrap()
    }

    fn fits(schema: &str, instance: &Value) -> bool {
        jsonschema::draft202012::new(&parse(schema)).unwrap().is_valid(instance)
    }

    #[test]
    fn each_schema_is_valid_and_says_what_it_is() {
        for schema in ALL.map(parse) {
            jsonschema::draft202012::meta::validate(&schema).unwrap();
            assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
            assert!(schema["$id"].as_str().unwrap().starts_with("urn:trestle:schema:"));
            assert!(schema["title"].is_string());
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{name}");
            }
        }
    }

    #[test]
    fn each_schema_accepts_its_own_examples() {
        for schema in ALL {
            let examples = parse(schema)["examples"].as_array().unwrap().clone();
            assert!(!examples.is_empty());
            for example in examples {
                assert!(fits(schema, &example), "{example}");
            }
        }
    }

    /// They are written out twice so that either file can be copied as it is.
    #[test]
    fn both_kinds_of_payment_mean_the_same_by_amount_and_currency() {
        let (kafka, http) = (parse(KAFKA_PAYMENT), parse(HTTP_PAYMENT));
        for member in ["amount", "currency"] {
            assert!(kafka["properties"][member].is_object());
            assert_eq!(kafka["properties"][member], http["properties"][member]);
        }
    }

    #[test]
    fn an_envelope_is_what_enqueue_takes() {
        let good = parse(ENVELOPE)["examples"][0].clone();
        let with = |member: &str, value: Value| {
            let mut row = good.clone();
            row[member] = value;
            fits(ENVELOPE, &row)
        };
        assert!(with("headers", json!({"a": "b"})));
        assert!(with("headers", Value::Null));
        assert!(with("instruction_id", json!("x".repeat(512))));
        assert!(with("rail_type", json!(format!("a{}", "-".repeat(62)))));
        for (member, value) in [
            ("headers", json!({"a": 1})),
            ("payload", json!([])),
            ("instruction_id", json!("  ")),
            ("participant_id", json!("a\nb")),
            ("idempotency_key", json!("x".repeat(513))),
            ("rail_type", json!("dlq")),
            ("rail_type", json!("Kafka")),
            ("rail_type", json!("a".repeat(64))),
            ("tenant_id", json!("not-a-uuid")),
            ("rail", json!("kafka")),
        ] {
            assert!(!with(member, value.clone()), "{member} {value}");
        }
    }

    fn members(schema: &Value) -> BTreeSet<&str> {
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// The SQL functions are the contract, and the schemas describe it.
    #[test]
    fn the_schemas_name_what_the_sql_functions_name() {
        let sql = include_str!("../../sql/functions/enqueue_batch_fault.sql");
        let (_, list) = sql.split_once("NOT IN (").unwrap();
        let (list, _) = list.split_once(')').unwrap();
        let keys: BTreeSet<&str> = list.split(", ").map(|key| key.trim_matches('\'')).collect();
        assert_eq!(members(&parse(ENVELOPE)), keys);

        let sql = include_str!("../../sql/functions/write_dead_letter.sql");
        let mut headers: BTreeSet<&str> =
            sql.split('\'').filter(|quoted| quoted.starts_with("dlq_")).collect();
        // The rail adds this one, where the letter was too large.
        headers.insert("dlq_shortened");
        assert_eq!(members(&parse(DLQ_RECORD)["properties"]["headers"]), headers);
    }

    #[test]
    fn a_dead_letter_says_which_row_failed_and_when() {
        let good = parse(DLQ_RECORD)["examples"][0].clone();
        for header in ["dlq_outbox_id", "dlq_rail_type", "dlq_attempts", "dlq_last_failed_at"] {
            let mut record = good.clone();
            record["headers"][header] = json!("?");
            assert!(!fits(DLQ_RECORD, &record), "{header} is anything");
            record["headers"].as_object_mut().unwrap().remove(header);
            assert!(!fits(DLQ_RECORD, &record), "{header} is missing");
        }
    }
}
