//! A collector of spans that a test runs: OTLP over HTTP, read by OpenTelemetry's own types.

use std::io::Read as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use tokio::sync::watch;

use crate::process::PATIENCE;

/// What it does with a request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Takes,
    /// Says no, and repeats what it was sent.
    Refuses,
    Hangs,
}

#[derive(Clone)]
pub(crate) struct Collector {
    mood: Arc<watch::Sender<Mood>>,
    requests: Arc<Mutex<Vec<(HeaderMap, ExportTraceServiceRequest)>>>,
    pub(crate) endpoint: String,
}

impl Collector {
    pub(crate) async fn open(mood: Mood) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let collector = Self {
            mood: Arc::new(watch::Sender::new(mood)),
            requests: Arc::default(),
            endpoint: format!("http://{}", listener.local_addr().unwrap()),
        };
        let router = Router::new().route("/v1/traces", post(export)).with_state(collector.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        collector
    }

    pub(crate) fn becomes(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    pub(crate) fn requests(&self) -> Vec<(HeaderMap, ExportTraceServiceRequest)> {
        self.requests.lock().unwrap().clone()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let requests = self.requests().into_iter().map(|(_, request)| request);
        let scopes =
            requests.flat_map(|request| request.resource_spans).flat_map(|r| r.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    /// Waits until it has been asked so often.
    pub(crate) async fn asked(&self, times: usize) {
        let until = Instant::now() + PATIENCE;
        while self.requests().len() < times {
            assert!(Instant::now() < until, "asked {} times", self.requests().len());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

async fn export(
    State(collector): State<Collector>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, Bytes) {
    let request = ExportTraceServiceRequest::decode(plain(&headers, &body).as_slice());
    let request = request.expect("a request by OTLP");
    collector.requests.lock().unwrap().push((headers, request));
    let mut mood = collector.mood.subscribe();
    let mood = *mood.wait_for(|mood| *mood != Mood::Hangs).await.unwrap();
    match mood {
        Mood::Refuses => (StatusCode::BAD_REQUEST, body),
        _ => (StatusCode::OK, Bytes::new()),
    }
}

fn plain(headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match headers.get("content-encoding").map(|encoding| encoding.to_str().unwrap()) {
        None => plain.extend_from_slice(body),
        Some("gzip") => {
            flate2::read::GzDecoder::new(body).read_to_end(&mut plain).expect("gzip");
        }
        Some(other) => panic!("{other}"),
    }
    plain
}

/// The attributes of a span, or of who made it, as text.
pub(crate) fn attribute(attributes: &[KeyValue], name: &str) -> Option<String> {
    let found = attributes.iter().find(|pair| pair.key == name)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{name} is {other:?}"),
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
