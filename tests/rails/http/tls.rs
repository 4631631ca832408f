//! TLS: private authorities, names, client certificates.

use rcgen::KeyPair;
use serde_json::{Value, json};
use trestle::delivery::Outcome;

use super::authority::Authority;
use super::rail;
use super::receiver::Receiver;
use crate::lanes::{self, Terms, deliver};

async fn receiver(authority: &Authority, name: &str, asks_for_certificates: bool) -> Receiver {
    Receiver::start_tls(authority.acceptor(name, asks_for_certificates, "http/1.1")).await
}

async fn outcome(settings: Value) -> Outcome {
    deliver(&rail(settings).unwrap(), lanes::rows("anna", 1), Terms::default()).outcome().await
}

fn delivered() -> Outcome {
    Outcome::Delivered { reference: None, rail_code: None }
}

#[tokio::test]
async fn a_private_authority_is_trusted_for_the_right_name_only() {
    let ours = Authority::new();
    let right = receiver(&ours, "localhost", false).await;
    assert_eq!(
        outcome(json!({ "url": right.url(), "ca_file": ours.ca_file() })).await,
        delivered()
    );
    let wrong = receiver(&ours, "elsewhere.example", false).await;
    let refused = outcome(json!({ "url": wrong.url(), "ca_file": ours.ca_file() })).await;
    assert_eq!(refused, Outcome::NotSent);
    assert!(wrong.requests().is_empty());
}

#[tokio::test]
async fn another_authority_is_not_trusted() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let receiver = receiver(&theirs, "localhost", false).await;
    let refused = outcome(json!({ "url": receiver.url(), "ca_file": ours.ca_file() })).await;
    assert_eq!(refused, Outcome::NotSent);
    assert!(receiver.requests().is_empty());
}

#[tokio::test]
async fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let ours = Authority::new();
    let receiver = receiver(&ours, "localhost", true).await;
    let client = ours.issue("trestle.example");
    let settings = json!({
        "url": receiver.url(),
        "ca_file": ours.ca_file(),
        "client_certificate_file": ours.write("client.pem", &client.certificate.pem()),
        "client_key_file": ours.write("client.key", &client.key.serialize_pem()),
    });
    assert_eq!(outcome(settings).await, delivered());
}

/// The whole way to a TLS session is bound, so that a silent host is no request in doubt.
#[tokio::test]
async fn a_host_that_never_says_a_word_of_tls_was_sent_nothing() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/", silent.local_addr().unwrap().port());
    let ours = Authority::new();
    let refused = outcome(json!({ "url": url, "ca_file": ours.ca_file() })).await;
    assert_eq!(refused, Outcome::NotSent);
}

/// With TLS 1.3 the refusal comes after the request has left, so it is no failed connection.
#[tokio::test]
async fn a_refused_client_certificate_fails_no_row() {
    let ours = Authority::new();
    let receiver = receiver(&ours, "localhost", true).await;
    let outcome = outcome(json!({ "url": receiver.url(), "ca_file": ours.ca_file() })).await;
    let Outcome::Unavailable { failure, maybe_sent: true } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.error_code, "HTTP_TLS_ALERT");
    assert!(receiver.requests().is_empty());
}

#[test]
fn certificate_files_are_read_when_the_rail_is_made() {
    let ours = Authority::new();
    let client = ours.issue("trestle.example");
    let certificate = ours.write("client.pem", &client.certificate.pem());
    let key = ours.write("client.key", &client.key.serialize_pem());
    let foreign_key = ours.write("foreign.key", &KeyPair::generate().unwrap().serialize_pem());
    let (junk, missing) =
        (ours.write("junk.pem", "not PEM"), ours.folder.path().join("missing.pem"));
    let url = "https://bank.example/";
    let cases = [
        ("ca_file", json!({ "ca_file": junk })),
        ("ca_file", json!({ "ca_file": missing })),
        ("ca_file", json!({ "url": "http://bank.example/", "ca_file": ours.ca_file() })),
        ("client_key_file", json!({ "client_certificate_file": certificate })),
        ("client_certificate_file", json!({ "client_key_file": key })),
        (
            "client_certificate_file",
            json!({ "client_certificate_file": junk, "client_key_file": key }),
        ),
        (
            "client_key_file",
            json!({ "client_certificate_file": certificate, "client_key_file": junk }),
        ),
        (
            "client_key_file",
            json!({ "client_certificate_file": certificate, "client_key_file": missing }),
        ),
        (
            "client_certificate_file",
            json!({ "client_certificate_file": certificate, "client_key_file": foreign_key }),
        ),
    ];
    for (key, settings) in cases {
        let mut whole = json!({ "url": url, "ca_file": ours.ca_file() });
        whole.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let error = rail(whole).err().expect("it is wrong").to_string();
        assert!(error.starts_with(&format!("`rails.ach.{key}` ")), "{settings}: {error}");
    }
}
