//! What is wrong with a rail's configuration is said by its key, and never by its value.

use serde_json::{Value, json};
use trestle::config::ConfigError;
use trestle::rails::Rail as _;

use super::rail;
use crate::lanes;

fn wrong(settings: Value) -> (String, String) {
    let mut whole = json!({ "url": "http://bank.example/payments" });
    whole.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    match rail(whole) {
        Err(ConfigError::Wrong { key, problem }) => (key, problem),
        Err(other) => panic!("{settings}: {other}"),
        Ok(_) => panic!("{settings} is taken"),
    }
}

#[test]
fn each_mistake_is_found_by_its_key() {
    let cases = [
        ("url", json!({ "url": "bank.example/payments" })),
        ("url", json!({ "url": "ftp://bank.example/" })),
        ("url", json!({ "url": "http://" })),
        ("url", json!({ "url": "https://user:hunter2@bank.example/" })),
        ("url", json!({ "url": "https://hunter2@bank.example/" })),
        ("bearer_token", json!({ "bearer_token": "hunter2\nx: y" })),
        ("bearer_token", json!({ "bearer_token": "" })),
        ("signing_secrets[0]", json!({ "signing_secrets": ["hunter2"] })),
        (
            "signing_secrets[1]",
            json!({ "signing_secrets": [super::SIGNING_SECRET, "whsec_hunter2"] }),
        ),
        ("idempotency_header", json!({ "idempotency_header": "not a name" })),
        ("idempotency_header", json!({ "idempotency_header": "Authorization" })),
        ("idempotency_header", json!({ "idempotency_header": "ce-id" })),
        ("reference_pointer", json!({ "reference_pointer": "payment/id" })),
        ("code_pointer", json!({ "code_pointer": "" })),
        ("codes.HTTP_99", json!({ "codes": { "HTTP_99": "terminal" } })),
        ("codes.HTTP_600", json!({ "codes": { "HTTP_600": "terminal" } })),
        ("codes.409", json!({ "codes": { "409": "terminal" } })),
        ("codes.CODE_", json!({ "code_pointer": "/code", "codes": { "CODE_": "terminal" } })),
        ("codes.CODE_X", json!({ "codes": { "CODE_X": "terminal" } })),
    ];
    for (key, settings) in cases {
        let (found, problem) = wrong(settings.clone());
        assert_eq!(found, format!("rails.ach.{key}"), "{settings}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn a_key_in_the_query_is_not_part_of_the_destination() {
    let rail = rail(json!({ "url": "http://bank.example/payments?key=hunter2#x" })).unwrap();
    let destination = rail.destination(&lanes::row("anna", 1)).unwrap();
    assert_eq!(&*destination, "http://bank.example/payments");
    assert_eq!(rail.only_destination(), Some(destination));
}

#[test]
fn codes_may_be_given_another_class() {
    let codes = json!({ "HTTP_404": "terminal", "CODE_AC04": "retryable" });
    let settings =
        json!({ "url": "http://bank.example/", "code_pointer": "/code", "codes": codes });
    assert!(rail(settings).is_ok());
}
