//! A bank with one path for payments. `PUT /answer/503` tells it what to answer from then on.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{post, put};
use tokio::net::TcpListener;

use crate::Result;
use crate::arrival::{Arrival, Journal};

struct Bank {
    answer: AtomicU16,
    /// The reference of each payment by its Idempotency-Key: a key pays once.
    booked: Mutex<HashMap<String, String>>,
    journal: Arc<Journal>,
}

/// Takes the port at once; what comes back serves until it is dropped.
pub(crate) async fn open(
    port: u16,
    journal: Arc<Journal>,
) -> Result<impl Future<Output = Result<()>>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|error| format!("the bank cannot listen on port {port}: {error}"))?;
    let bank = Bank { answer: AtomicU16::new(200), booked: Mutex::default(), journal };
    let router = Router::new()
        .route("/payments", post(pay))
        .route("/answer/{status}", put(answer))
        .with_state(Arc::new(bank));
    Ok(async move { Ok(axum::serve(listener, router).await?) })
}

async fn answer(State(bank): State<Arc<Bank>>, Path(status): Path<u16>) -> StatusCode {
    if StatusCode::from_u16(status).is_err() {
        return StatusCode::BAD_REQUEST;
    }
    bank.answer.store(status, Ordering::Relaxed);
    StatusCode::OK
}

async fn pay(
    State(bank): State<Arc<Bank>>,
    headers: HeaderMap,
    body: String,
) -> (StatusCode, String) {
    let status = bank.answer.load(Ordering::Relaxed);
    let arrival = arrival(&headers, body, status);
    if status != 200 {
        bank.journal.refused(&arrival);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return (status, r#"{"code": "NOT_BOOKED"}"#.to_owned());
    }
    let reference = bank.book(text(&headers, "idempotency-key"));
    bank.journal.taken(&arrival);
    (StatusCode::OK, format!(r#"{{"id": "{reference}"}}"#))
}

impl Bank {
    fn book(&self, key: String) -> String {
        let mut booked = self.booked.lock().unwrap_or_else(PoisonError::into_inner);
        let next = format!("booking-{}", booked.len() + 1);
        booked.entry(key).or_insert(next).clone()
    }
}

fn arrival(headers: &HeaderMap, value: String, status: u16) -> Arrival {
    Arrival {
        rail: "bank",
        participant: text(headers, "ce-subject"),
        sequence: text(headers, "trestle-sequence-id").parse().unwrap_or(0),
        instruction: text(headers, "trestle-instruction-id"),
        place: format!("POST /payments {status}"),
        headers: vec![("attempt", text(headers, "trestle-attempt-no"))],
        key: Some(text(headers, "idempotency-key")),
        value,
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}
