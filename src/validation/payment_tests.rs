//! Which payments the schemas let through.

use super::Validator;
use crate::config::RailConfig;

fn kafka() -> Validator {
    let written = serde_json::json!({"kind": "kafka", "topic": "t"});
    Validator::load("k", &RailConfig::Kafka(serde_json::from_value(written).unwrap())).unwrap()
}

fn http() -> Validator {
    let written = serde_json::json!({"kind": "http", "url": "https://bank.example"});
    Validator::load("h", &RailConfig::Http(serde_json::from_value(written).unwrap())).unwrap()
}

fn message(validator: &Validator, payload: &str) -> String {
    let failure = validator.check(payload).unwrap_err();
    assert_eq!(failure.error_code, "PAYLOAD_INVALID");
    failure.message
}

#[test]
fn the_examples_of_the_readme_pass() {
    let full = r#"{"amount": "10.00", "currency": "EUR", "destination": "DE89370400440532013000"}"#;
    kafka().check(full).unwrap();
    kafka().check(r#"{"amount": "10.00", "currency": "EUR"}"#).unwrap();
    http().check(full).unwrap();
}

#[test]
fn an_amount_of_any_length_passes() {
    let nines = "9".repeat(300);
    for amount in [
        "\"12345678901234567890.12\"",
        "12345678901234567890",
        "12345678901234567890.123456789",
        "123456789012345678901234567890",
        "0.01",
        "\"0.01\"",
        "\"0.0000000000000000000000000001\"",
        "1e5",
        "1E-5",
        nines.as_str(),
    ] {
        let payload = format!(r#"{{"amount": {amount}, "currency": "EUR"}}"#);
        kafka().check(&payload).unwrap();
    }
}

#[test]
fn an_amount_that_is_not_above_zero_is_refused_in_every_spelling() {
    for amount in [
        "0",
        "0.0",
        "-0",
        "-0.0",
        "0e5",
        "0E-5",
        "-1",
        "-0.01",
        "null",
        "true",
        "[]",
        "{}",
        "[1]",
        "\"\"",
        "\"0\"",
        "\"0.00\"",
        "\"00\"",
        "\"000.000\"",
        "\"-1\"",
        "\"+1\"",
        "\"1e5\"",
        "\"01\"",
        "\"1.\"",
        "\".5\"",
        "\"1,000\"",
        "\" 1\"",
        "\"1 \"",
        "\"1\\n\"",
        "\"1.0.0\"",
        "\"0x1\"",
        "\"NaN\"",
        "\"Infinity\"",
        "\"١٢\"",
        "\"1\\u0000\"",
    ] {
        let payload = format!(r#"{{"amount": {amount}, "currency": "EUR"}}"#);
        let message = message(&kafka(), &payload);
        assert!(message.starts_with("/amount must "), "{amount}: {message}");
        assert!(message.contains("a decimal above zero"), "{amount}: {message}");
    }
}

/// A double ends at 1.8e308 and begins at 5e-324. Neither end is an amount of money.
#[test]
fn a_number_that_no_double_can_hold_is_refused_and_not_mangled() {
    let digits = format!("1{}", "0".repeat(400));
    for amount in ["1e400", digits.as_str()] {
        let payload = format!(r#"{{"amount": {amount}, "currency": "EUR"}}"#);
        let message = message(&kafka(), &payload);
        assert!(message.contains("number beyond 1.8e308"), "{message}");
    }
    let message = message(&kafka(), r#"{"amount": 1e-400, "currency": "EUR"}"#);
    assert!(message.starts_with("/amount must be greater than 0"), "{message}");
}

#[test]
fn a_currency_is_an_active_code_in_capitals() {
    for currency in ["EUR", "USD", "JPY", "XCG", "ZWG"] {
        let payload = format!(r#"{{"amount": 1, "currency": "{currency}"}}"#);
        kafka().check(&payload).unwrap();
    }
    for currency in ["eur", "", "EURO", "DEM", "XXX", "XTS", "EU", " EUR"] {
        let payload = format!(r#"{{"amount": 1, "currency": "{currency}"}}"#);
        let message = message(&kafka(), &payload);
        assert!(message.starts_with("/currency must be one of the schema's "), "{message}");
        assert!(message.contains("ISO 4217"), "{message}");
    }
}

#[test]
fn the_destination_has_the_form_of_the_rail() {
    let with = |destination: &str| {
        format!(r#"{{"amount": 1, "currency": "EUR", "destination": {destination}}}"#)
    };
    let long = |length: usize| format!("\"{}\"", "ü".repeat(length));
    kafka().check(&with(&long(5_000))).unwrap();
    http().check(&with(&long(140))).unwrap();
    for validator in [kafka(), http()] {
        for destination in ["\"\"", "null", "7"] {
            let message = message(&validator, &with(destination));
            assert!(message.starts_with("/destination must "), "{message}");
        }
    }
    assert!(message(&http(), &with(&long(141))).starts_with("/destination must have at most 140 "));
    let missing = message(&http(), r#"{"amount": 1, "currency": "EUR"}"#);
    assert!(missing.starts_with("/destination is missing (where the payment goes"), "{missing}");
}

#[test]
fn several_mistakes_are_told_at_once_and_no_value_is_repeated() {
    let payload = r#"{"amount": "hunter2", "currency": "hunter2", "destination": ["hunter2"]}"#;
    let message = message(&http(), payload);
    for pointer in ["/amount ", "/currency ", "/destination "] {
        assert!(message.contains(pointer), "{message}");
    }
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn other_members_are_welcome() {
    kafka().check(r#"{"amount": 1, "currency": "EUR", "memo": {"a": [1, null]}}"#).unwrap();
}
