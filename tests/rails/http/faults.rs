//! Receivers and networks that misbehave.

use std::time::Duration;

use serde_json::json;
use trestle::delivery::Outcome;

use super::rail;
use super::receiver::{Receiver, Reply, Request};
use crate::lanes::{self, Terms, deliver, words};

/// What becomes of one row when the receiver answers so.
async fn outcome_of(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Outcome {
    let receiver = Receiver::start(script).await;
    let rail = rail(json!({ "url": receiver.url() })).unwrap();
    deliver(&rail, lanes::rows("anna", 1), Terms::default()).outcome().await
}

/// The kind and the code of a failure.
fn failure(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Refused(failure) => ("refused", &failure.error_code),
        Outcome::Retry(failure) => ("retry", &failure.error_code),
        Outcome::Unavailable { failure, maybe_sent: true } => ("unavailable", &failure.error_code),
        other => panic!("no failure after sending: {other:?}"),
    }
}

#[tokio::test]
async fn each_status_means_what_its_class_says() {
    let expected = [
        (301, "unavailable"),
        (400, "refused"),
        (401, "unavailable"),
        (404, "unavailable"),
        (409, "retry"),
        (410, "unavailable"),
        (422, "refused"),
        (429, "unavailable"),
        (500, "retry"),
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "retry"),
        (599, "retry"),
    ];
    for (status, kind) in expected {
        let outcome = outcome_of(move |_| Reply::status(status, "")).await;
        assert_eq!(failure(&outcome), (kind, format!("HTTP_{status}").as_str()));
    }
    for status in [200, 201, 202, 204] {
        let outcome = outcome_of(move |_| Reply::status(status, "")).await;
        assert_eq!(outcome, Outcome::Delivered { reference: None, rail_code: None }, "{status}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Receiver::start(|_| Reply::status(200, "")).await;
    let location = format!("location: {}", elsewhere.url());
    let outcome = outcome_of(move |_| Reply::with_header(307, &location, "")).await;
    assert_eq!(failure(&outcome), ("unavailable", "HTTP_307"));
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn a_time_out_covers_the_whole_answer() {
    let scripts: [fn(&Request) -> Reply; 3] = [
        |_| Reply::Hang,
        |_| Reply::Drip("", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        |_| {
            Reply::Drip(
                "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n",
                "0123456789012345678901234567890123456789",
            )
        },
    ];
    for script in scripts {
        let outcome = outcome_of(script).await;
        assert_eq!(failure(&outcome), ("retry", "HTTP_TIMEOUT"));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let broken: [&'static [u8]; 6] = [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 422 X\r\ncontent-length: 10\r\n\r\nabc",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ];
    for bytes in broken {
        let outcome = outcome_of(|_| Reply::Raw(bytes.to_vec())).await;
        assert_eq!(
            failure(&outcome),
            ("retry", "HTTP_CONNECTION_LOST"),
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    let receiver = Receiver::start(|_| Reply::Flood(100_000_000)).await;
    let rail =
        rail(json!({ "url": receiver.url(), "timeout_seconds": 20, "reference_pointer": "/id" }))
            .unwrap();
    let lane = deliver(&rail, lanes::rows("anna", 1), Terms::default());
    assert_eq!(lane.outcome().await, Outcome::Delivered { reference: None, rail_code: None });
    let written = receiver.written();
    assert!(written < 50_000_000, "the rest stayed with the receiver, but {written} bytes came");
}

/// It says 200 and refuses the row in its answer: that must be heard, however the answer looks, or be in doubt.
#[tokio::test]
async fn a_200_that_may_hold_a_refusal_is_delivered_only_when_it_was_read() {
    let latin = b"{\"name\": \"M\xfcller\", \"status\": \"REJECTED\"}".to_vec();
    let marked = b"\xef\xbb\xbf{\"status\": \"REJECTED\"}".to_vec();
    let long = format!("{{\"note\": \"{}\", \"status\": \"REJECTED\"}}", "x".repeat(70_000));
    let cases = [
        (latin, ("refused", "CODE_REJECTED")),
        (marked, ("refused", "CODE_REJECTED")),
        (long.into_bytes(), ("retry", "HTTP_ANSWER_UNREADABLE")),
        (b"\x1f\x8b\x08\x00".to_vec(), ("retry", "HTTP_ANSWER_UNREADABLE")),
    ];
    for (body, expected) in cases {
        let mut answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
        answer.extend(&body);
        let receiver = Receiver::start(move |_| Reply::Whole(answer.clone())).await;
        let rail = rail(json!({ "url": receiver.url(), "code_pointer": "/status",
            "codes": { "CODE_REJECTED": "terminal" } }))
        .unwrap();
        let lane = deliver(&rail, lanes::rows("anna", 1), Terms::default());
        assert_eq!(failure(&lane.outcome().await), expected);
    }
}

#[tokio::test]
async fn what_the_receiver_asks_for_is_passed_on() {
    let outcome = outcome_of(|_| Reply::with_header(429, "retry-after: 17", "")).await;
    let Outcome::Unavailable { failure, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.retry_after, Some(Duration::from_secs(17)));
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    for url in ["http://nobody.invalid/", "http://127.0.0.1:1/"] {
        let rail = rail(json!({ "url": url })).unwrap();
        let settled = deliver(&rail, lanes::rows("anna", 2), Terms::unordered()).settled().await;
        assert_eq!(words(&settled), ["released"; 2], "{url}");
    }
}
