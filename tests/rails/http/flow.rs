//! How lanes go through the rail: how many, in which order, and when they stop.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use tokio::sync::Semaphore;
use trestle::delivery::Outcome;
use trestle::rails::Rail as _;

use super::rail;
use super::receiver::{Receiver, Reply};
use crate::lanes::{self, Terms, deliver, words};

#[tokio::test]
async fn lanes_go_in_parallel_up_to_the_cap() {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let receiver = Receiver::start(move |_| Reply::When(Arc::clone(&held))).await;
    let rail =
        rail(json!({ "url": receiver.url(), "concurrency": 3, "timeout_seconds": 30 })).unwrap();
    let lanes: Vec<_> = (0..8)
        .map(|number| deliver(&rail, lanes::rows(&format!("p{number}"), 2), Terms::default()))
        .collect();
    receiver.wait_for(3).await;
    permits.add_permits(16);
    for lane in lanes {
        assert_eq!(words(&lane.settled().await), ["delivered"; 2]);
    }
    assert_eq!(receiver.most_under_way(), 3);
}

#[tokio::test]
async fn a_lane_has_one_row_under_way() {
    let receiver = Receiver::start(|_| Reply::status(200, "")).await;
    let rail = rail(json!({ "url": receiver.url() })).unwrap();
    for terms in [Terms::default(), Terms::unordered()] {
        let lane = deliver(&rail, lanes::rows("anna", 10), terms);
        assert_eq!(words(&lane.settled().await), ["delivered"; 10]);
    }
    assert_eq!(receiver.most_under_way(), 1);
}

#[tokio::test]
async fn requests_start_no_faster_than_allowed() {
    let receiver = Receiver::start(|_| Reply::status(200, "")).await;
    let rail = rail(json!({ "url": receiver.url(), "requests_per_second": 20 })).unwrap();
    let begin = Instant::now();
    let lanes = ["anna", "bob"].map(|name| deliver(&rail, lanes::rows(name, 3), Terms::default()));
    for lane in lanes {
        assert_eq!(words(&lane.settled().await), ["delivered"; 3]);
    }
    assert!(begin.elapsed() >= Duration::from_millis(250), "six starts have five pauses");
}

#[tokio::test]
async fn a_worker_that_stops_finishes_its_request_and_gives_back_the_rest() {
    let terms = Terms::default();
    let stopping = Arc::clone(&terms.stopping);
    let receiver = Receiver::start(move |_| {
        stopping.store(true, Ordering::Relaxed);
        Reply::status(200, "")
    })
    .await;
    let rail = rail(json!({ "url": receiver.url() })).unwrap();
    let lane = deliver(&rail, lanes::rows("anna", 3), terms);
    assert_eq!(words(&lane.settled().await), ["delivered", "released"]);
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn an_unavailable_receiver_is_not_asked_for_each_row() {
    let receiver = Receiver::start(|_| Reply::status(503, "")).await;
    let rail = rail(json!({ "url": receiver.url() })).unwrap();
    let settled = deliver(&rail, lanes::rows("anna", 3), Terms::unordered()).settled().await;
    assert_eq!(words(&settled), ["in doubt", "released", "released"]);
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn a_lane_that_stands_in_line_need_not_wait_to_be_given_back() {
    let receiver = Receiver::start(|_| Reply::Hang).await;
    let rail = rail(json!({ "url": receiver.url(), "concurrency": 1, "timeout_seconds": 3600 }));
    let rail = rail.unwrap();
    let long = || Terms::leased_for(Duration::from_secs(7_200));
    let _hanging = deliver(&rail, lanes::rows("anna", 1), long());
    receiver.wait_for(1).await;
    let terms = long();
    let stopping = Arc::clone(&terms.stopping);
    let waiting = deliver(&rail, lanes::rows("bob", 1), terms);
    stopping.store(true, Ordering::Relaxed);
    assert_eq!(words(&waiting.settled().await), ["released"]);
}

#[tokio::test]
async fn a_lane_whose_turn_comes_too_late_is_not_sent() {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let receiver = Receiver::start(move |_| Reply::When(Arc::clone(&held))).await;
    let rail =
        rail(json!({ "url": receiver.url(), "concurrency": 1, "timeout_seconds": 30 })).unwrap();
    let first = deliver(&rail, lanes::rows("anna", 1), Terms::default());
    receiver.wait_for(1).await;
    let terms = Terms::default();
    let stopping = Arc::clone(&terms.stopping);
    let second = deliver(&rail, lanes::rows("bob", 1), terms);
    // It joins the line before it is told to stop, and the turn comes before it looks again.
    tokio::task::yield_now().await;
    stopping.store(true, Ordering::Relaxed);
    permits.add_permits(2);
    assert_eq!(words(&first.settled().await), ["delivered"]);
    assert_eq!(words(&second.settled().await), ["released"]);
    assert_eq!(receiver.requests().len(), 1);
}

#[tokio::test]
async fn giving_up_tells_apart_what_was_started() {
    let receiver = Receiver::start(|_| Reply::Hang).await;
    let rail = rail(json!({ "url": receiver.url(), "concurrency": 1, "timeout_seconds": 3600 }));
    let rail = rail.unwrap();
    let long = || Terms::leased_for(Duration::from_secs(7_200));
    let started = deliver(&rail, lanes::rows("anna", 1), long());
    receiver.wait_for(1).await;
    let waiting = deliver(&rail, lanes::rows("bob", 2), long());
    rail.abandon().await;
    assert_eq!(words(&waiting.settled().await), ["released"]);
    let outcome = started.outcome().await;
    let Outcome::Unavailable { failure, maybe_sent: true } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.error_code, "HTTP_ABANDONED");
}

#[tokio::test]
async fn what_the_receiver_may_have_forgotten_is_not_sent_again() {
    let receiver = Receiver::start(|_| Reply::status(200, "")).await;
    let rail = rail(json!({ "url": receiver.url(), "idempotency_ttl_seconds": 3600 })).unwrap();
    let mut rows = lanes::rows("anna", 3);
    let long_ago = SystemTime::now() - Duration::from_secs(7_200);
    // Old and never tried; in doubt for a moment; in doubt for long, as a replay perhaps.
    rows[0].created_at = long_ago;
    rows[1].in_doubt_since = Some(SystemTime::now());
    rows[2].in_doubt_since = Some(long_ago);
    let settled = deliver(&rail, rows, Terms::default()).settled().await;
    assert_eq!(words(&settled), ["delivered", "delivered", "refused"]);
    assert!(format!("{:?}", settled[2]).contains("IDEMPOTENCY_WINDOW_PASSED"));
    assert_eq!(receiver.requests().len(), 2);
}

#[tokio::test]
async fn a_request_is_what_the_configuration_says() {
    let receiver = Receiver::start(|_| Reply::status(200, r#"{"id": 12345678901234567890}"#)).await;
    let rail = rail(json!({
        "url": receiver.url(),
        "idempotency_header": "X-Request-Key",
        "idempotency_quoted": true,
        "bearer_token": super::TOKEN,
        "source": "https://trestle.example/düsseldorf",
        "reference_pointer": "/id",
    }));
    let rows = lanes::rows("anna", 1);
    let (key, payload) = (rows[0].rail_key(), rows[0].payload.clone());
    let outcome = deliver(&rail.unwrap(), rows, Terms::default()).outcome().await;
    let reference = Some("12345678901234567890".to_owned());
    assert_eq!(outcome, Outcome::Delivered { reference, rail_code: None });
    let request = receiver.requests().remove(0);
    assert_eq!(request.head.lines().next(), Some("POST /payments HTTP/1.1"));
    assert_eq!(request.body, payload.as_bytes());
    let expected = [
        ("content-type", "application/json"),
        ("x-request-key", &format!("\"{key}\"")),
        ("authorization", &format!("Bearer {}", super::TOKEN)),
        ("ce-source", "https://trestle.example/d%C3%BCsseldorf"),
        ("ce-specversion", "1.0"),
        ("trestle-sequence-id", "1"),
        ("user-agent", concat!("trestle/", env!("CARGO_PKG_VERSION"))),
    ];
    for (name, value) in expected {
        assert_eq!(request.header(name), Some(value), "{name}");
    }
}
