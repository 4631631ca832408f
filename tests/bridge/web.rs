//! An HTTP rail end to end.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use tokio::sync::watch;

use crate::outages::{COUNTED, nothing_failed_or_counted};
use crate::process::{PATIENCE, Setup};
use crate::rows::{all_done, check_lanes, count, enqueue, wait_for};
use crate::support::Database;

/// A bank that does as it is told, and remembers who asked.
#[derive(Clone)]
pub(crate) struct Bank {
    /// Nothing while it takes requests and does not answer.
    answer: Arc<watch::Sender<Option<StatusCode>>>,
    /// Whose payments it takes and does not answer.
    held: Arc<watch::Sender<Option<String>>>,
    requests: Arc<Mutex<Vec<(HeaderMap, Bytes)>>>,
    url: String,
}

impl Bank {
    pub(crate) async fn open(answer: StatusCode) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bank = Self {
            answer: Arc::new(watch::Sender::new(Some(answer))),
            held: Arc::new(watch::Sender::new(None)),
            requests: Arc::default(),
            url: format!("http://{}/payments", listener.local_addr().unwrap()),
        };
        let router = Router::new().route("/payments", post(pay)).with_state(bank.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        bank
    }

    pub(crate) fn answer(&self, status: StatusCode) {
        self.answer.send_replace(Some(status));
    }

    pub(crate) fn hang(&self) {
        self.answer.send_replace(None);
    }

    /// This participant gets no answer until it is somebody else's turn, or nobody's.
    pub(crate) fn hold(&self, participant: Option<&str>) {
        self.held.send_replace(participant.map(str::to_owned));
    }

    /// Waits until so many requests have come.
    pub(crate) async fn asked(&self, count: usize) {
        let until = std::time::Instant::now() + PATIENCE;
        while self.requests().len() < count {
            assert!(std::time::Instant::now() < until, "{} requests came", self.requests().len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) fn requests(&self) -> Vec<(HeaderMap, Bytes)> {
        self.requests.lock().unwrap().clone()
    }

    /// Whose payments came, in the order in which they came.
    pub(crate) fn asked_by(&self) -> Vec<String> {
        let requests = self.requests();
        requests.iter().map(|(headers, _)| header(headers, "ce-subject").to_owned()).collect()
    }

    /// The sequence numbers of each participant's payments, in the order in which they came.
    pub(crate) fn lanes(&self) -> HashMap<String, Vec<i64>> {
        let mut lanes: HashMap<String, Vec<i64>> = HashMap::new();
        for (headers, _) in self.requests() {
            let number = header(&headers, "trestle-sequence-id").parse().unwrap();
            lanes.entry(header(&headers, "ce-subject").to_owned()).or_default().push(number);
        }
        lanes
    }

    /// All payments came, in order, and one that came again had the same key, which no other has. Returns how
    /// many came again.
    pub(crate) fn all_in_order(&self, rows: usize) -> usize {
        let (requests, mut keys) = (self.requests(), HashMap::new());
        for (headers, _) in &requests {
            let name = |name| header(headers, name).to_owned();
            let payment = (name("ce-subject"), name("trestle-sequence-id"));
            let key = name("idempotency-key");
            let first = keys.entry(payment.clone()).or_insert(key.clone());
            assert_eq!(*first, key, "{payment:?} came with another key");
        }
        let others: HashSet<&String> = keys.values().collect();
        assert_eq!((keys.len(), others.len()), (rows, rows), "payments and keys");
        let again = check_lanes(self.lanes());
        assert_eq!(requests.len(), rows + again);
        again
    }

    /// A bridge with this bank as its rail `bank`.
    pub(crate) async fn setup(&self, database: &Database) -> Setup {
        Setup::new(database)
            .await
            .and(&format!("[rails.bank]\nkind = \"http\"\nurl = \"{}\"\n", self.url))
    }
}

async fn pay(State(bank): State<Bank>, headers: HeaderMap, body: Bytes) -> StatusCode {
    bank.requests.lock().unwrap().push((headers.clone(), body));
    let mut answer = bank.answer.subscribe();
    let status = *answer.wait_for(Option::is_some).await.unwrap();
    let (mut held, own) = (bank.held.subscribe(), header(&headers, "ce-subject"));
    held.wait_for(|held| held.as_deref() != Some(own)).await.unwrap();
    status.unwrap()
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).unwrap_or_else(|| panic!("no {name} in {headers:?}")).to_str().unwrap()
}

#[tokio::test]
async fn payments_reach_the_bank_in_order_and_once() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    let setup = bank.setup(&database).await;
    let _workers = [setup.run(), setup.run()];
    enqueue(&database.connect().await, "bank", 20, 400).await;
    all_done(&database).await;
    assert_eq!(bank.all_in_order(400), 0, "none came twice");
    assert_eq!(count(&database, "DISPATCHED").await, 400);
}

#[tokio::test]
async fn a_bank_that_is_down_fails_and_counts_nothing_and_gets_everything_afterwards() {
    let (database, bank) =
        (Database::new().await, Bank::open(StatusCode::SERVICE_UNAVAILABLE).await);
    let bridge = bank.setup(&database).await.run();
    enqueue(&database.connect().await, "bank", 30, 60).await;
    bridge.logged("unavailable").await;
    // Several probes go out before it is back.
    wait_for(&database, "SELECT count(*) >= 3 FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE' AND NOT counted").await;
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    assert_eq!(count(&database, "FAILED").await, 0);
    assert_eq!(count(&database, "DISPATCHED").await, 60);
    let keys: std::collections::HashSet<String> = bank
        .requests()
        .iter()
        .map(|(headers, _)| header(headers, "idempotency-key").to_owned())
        .collect();
    assert_eq!(keys.len(), 60, "a row keeps its key over all its attempts");
}

/// Each start of a bridge tries anew, without waiting for a probe: that is far more than the twenty
/// attempts after which a row would have failed, had they been counted.
#[tokio::test]
async fn a_bank_that_is_down_for_longer_than_any_number_of_retries_fails_and_counts_nothing() {
    let (database, bank) =
        (Database::new().await, Bank::open(StatusCode::SERVICE_UNAVAILABLE).await);
    database.control_clock().await;
    let setup = bank.setup(&database).await;
    enqueue(&database.connect().await, "bank", 3, 9).await;
    for _ in 0..25 {
        let mut bridge = setup.run();
        bridge.logged("unavailable").await;
        bridge.signal("TERM");
        assert!(bridge.ended().await.success(), "{}", bridge.log());
        database.advance(Duration::from_secs(1_200)).await;
    }
    let refused = bank.lanes();
    assert!(refused.values().any(|lane| lane.len() > 20), "{refused:?}");
    assert!(refused.values().flatten().all(|number| *number == 1), "{refused:?}");
    nothing_failed_or_counted(&database).await;
    bank.answer(StatusCode::OK);
    let _bridge = setup.run();
    all_done(&database).await;
    for (participant, mut numbers) in bank.lanes() {
        assert!(numbers.is_sorted(), "{participant}: {numbers:?}");
        numbers.dedup();
        assert_eq!(numbers, [1, 2, 3], "{participant}");
    }
    assert_eq!(count(&database, "DISPATCHED").await, 9);
    nothing_failed_or_counted(&database).await;
}

/// Nobody knows of the first rows whether they were booked, so they count; then it is down.
#[tokio::test]
async fn a_bank_that_never_answers_counts_as_down_and_gets_everything_afterwards() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    bank.hang();
    let bridge = bank.setup(&database).await.and("timeout_seconds = 1\n").run();
    enqueue(&database.connect().await, "bank", 8, 16).await;
    bridge.logged("unavailable").await;
    wait_for(&database, "SELECT count(*) >= 2 FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE' AND NOT counted").await;
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    assert_eq!(count(&database, "FAILED").await, 0);
    assert_eq!(count(&database, "DISPATCHED").await, 16);
    let counted: i64 = database.connect().await.query_one(COUNTED, &[]).await.unwrap().get(0);
    assert!((5..=8).contains(&counted), "{counted} attempts were counted");
}

#[tokio::test]
async fn a_payment_that_takes_its_time_does_not_hold_up_the_outcomes_of_the_others() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    bank.hold(Some("p1"));
    enqueue(&database.connect().await, "bank", 5, 15).await;
    let _bridge = bank.setup(&database).await.run();
    wait_for(
        &database,
        "SELECT count(*) = 12 FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'",
    )
    .await;
    assert_eq!(bank.lanes()["p1"], [1], "it is still under way");
    let outcomes =
        "SELECT count(*) = 0 FROM outbox.payment_outbox_attempts WHERE participant_id = 'p1'";
    wait_for(&database, outcomes).await;
    bank.hold(None);
    all_done(&database).await;
    assert_eq!(bank.all_in_order(15), 0, "none came twice");
    assert_eq!(count(&database, "DISPATCHED").await, 15);
}

/// An operator who pauses a lane and forgets to commit holds up the outcome of that lane's row, and no other.
#[tokio::test]
async fn an_open_transaction_on_one_lane_does_not_hold_up_the_outcomes_of_the_others() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    bank.hang();
    let bridge = bank.setup(&database).await.run();
    enqueue(&database.connect().await, "bank", 4, 4).await;
    bank.asked(4).await;
    let operator = database.connect().await;
    let pause = "BEGIN; SELECT outbox.pause_outbox_lane(min(participant_id), 'bank', 'ann', 'why') \
        FROM outbox.payment_outbox_pending";
    operator.batch_execute(pause).await.unwrap();
    bank.answer(StatusCode::OK);
    wait_for(&database, "SELECT count(*) = 3 FROM outbox.payment_outbox_attempts").await;
    bridge.logged("somebody else has locked a lane").await;
    operator.batch_execute("COMMIT").await.unwrap();
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 4);
    assert_eq!(bank.requests().len(), 4, "nothing was sent twice");
}

#[tokio::test]
async fn a_payment_that_the_bank_refuses_is_a_dead_letter_and_its_neighbours_go_on() {
    let (database, bank) =
        (Database::new().await, Bank::open(StatusCode::UNPROCESSABLE_ENTITY).await);
    let client = database.connect().await;
    enqueue(&client, "bank", 1, 3).await;
    let _bridge = bank.setup(&database).await.run();
    wait_for(&database, "SELECT count(*) = 3 FROM outbox.payment_outbox_attempts WHERE state = 'FAILED' AND error_code = 'HTTP_422'").await;
    let letters = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE rail_type = 'dlq'";
    assert_eq!(client.query_one(letters, &[]).await.unwrap().get::<_, i64>(0), 3);
}
