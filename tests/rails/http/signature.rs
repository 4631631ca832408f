//! Signatures, with the scheme's own library as the judge.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use standardwebhooks::Webhook;

use super::receiver::{Receiver, Reply, Request};
use super::{SIGNING_SECRET, rail};
use crate::lanes::{self, Terms, deliver, words};

const OLD_SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const FOREIGN_SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

async fn signed_with(secrets: &[&str]) -> Vec<Request> {
    let receiver = Receiver::start(|_| Reply::status(200, "")).await;
    let rail = rail(json!({ "url": receiver.url(), "signing_secrets": secrets })).unwrap();
    let lane = deliver(&rail, lanes::rows("anna", 2), Terms::default());
    assert_eq!(words(&lane.settled().await), ["delivered"; 2]);
    receiver.requests()
}

fn verifies(secret: &str, request: &Request, body: &[u8]) -> bool {
    let mut headers = HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        let value = HeaderValue::from_str(request.header(name).unwrap()).unwrap();
        headers.insert(HeaderName::from_static(name), value);
    }
    Webhook::new(secret).unwrap().verify(body, &headers).is_ok()
}

#[tokio::test]
async fn a_receiver_with_the_secret_believes_the_request_and_no_other() {
    for request in signed_with(&[SIGNING_SECRET]).await {
        assert!(verifies(SIGNING_SECRET, &request, &request.body));
        assert!(!verifies(FOREIGN_SECRET, &request, &request.body));
        assert!(!verifies(SIGNING_SECRET, &request, b"{}"));
    }
}

#[tokio::test]
async fn while_secrets_rotate_both_are_believed() {
    for request in signed_with(&[SIGNING_SECRET, OLD_SECRET]).await {
        assert!(verifies(SIGNING_SECRET, &request, &request.body));
        assert!(verifies(OLD_SECRET, &request, &request.body));
        assert!(!verifies(FOREIGN_SECRET, &request, &request.body));
    }
}

#[tokio::test]
async fn each_row_has_an_id_of_its_own() {
    let requests = signed_with(&[SIGNING_SECRET]).await;
    assert_ne!(requests[0].header("webhook-id"), requests[1].header("webhook-id"));
    assert_eq!(requests[0].header("webhook-id"), requests[0].header("idempotency-key"));
}
