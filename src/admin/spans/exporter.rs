//! Brings spans to a collector, by OTLP over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use opentelemetry::{Key, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use reqwest::{Client, Url};
use tokio::sync::mpsc;

use crate::config::ConfigError;

const KEY: &str = "telemetry.otlp_endpoint";
/// What OTLP adds to the address of a collector for traces.
const PATH: &str = "v1/traces";
/// One request takes no longer; the spans of one that does are lost.
const TIMEOUT: Duration = Duration::from_secs(5);
/// At most so many spans in one request.
const BATCH: usize = 512;
/// How long a span waits for company.
const GATHER: Duration = Duration::from_millis(500);

/// An exporter, and where its collector is, without what may be a token.
pub(super) struct Exporter {
    spans: SpanExporter,
    pub(super) collector: Url,
}

pub(super) fn build(endpoint: &str) -> Result<Exporter, ConfigError> {
    let wrong = |problem: String| ConfigError::Wrong { key: KEY.to_owned(), problem };
    let url = address(endpoint).map_err(|problem| wrong(problem.to_owned()))?;
    let mut spans = SpanExporter::builder()
        .with_http()
        .with_http_client(client(&url).map_err(|error| wrong(error.to_string()))?)
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(url.as_str())
        .with_timeout(TIMEOUT)
        .build()
        .map_err(|error| wrong(format!("cannot be used: {error}")))?;
    opentelemetry_sdk::trace::SpanExporter::set_resource(&mut spans, &resource());
    let mut collector = url;
    collector.set_query(None);
    Ok(Exporter { spans, collector })
}

/// Where traces are POSTed.
fn address(endpoint: &str) -> Result<Url, &'static str> {
    const LIKE: &str =
        "must be the address of a collector for OTLP over HTTP, such as http://collector:4318";
    let mut url: Url = endpoint.parse().map_err(|_| LIKE)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(LIKE);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user or password: use OTEL_EXPORTER_OTLP_HEADERS");
    }
    let base = url.path().trim_end_matches('/').to_owned();
    if base.ends_with(PATH) {
        return Err("must be without /v1/traces, which is added");
    }
    url.set_path(&format!("{base}/{PATH}"));
    Ok(url)
}

fn client(url: &Url) -> Result<Client, reqwest::Error> {
    let builder = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(TIMEOUT)
        .pool_max_idle_per_host(1);
    // Without TLS nobody is trusted, so that a machine without certificates can speak plain HTTP.
    let builder = if url.scheme() == "http" { builder.tls_certs_only([]) } else { builder };
    builder.build()
}

/// Who we are: as OpenTelemetry's own variables say, and otherwise by our name.
fn resource() -> Resource {
    let said = Resource::builder().build();
    let name = said.get(&Key::from_static_str("service.name")).map(|name| name.to_string());
    let builder = Resource::builder()
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    match name {
        Some(name) if !name.starts_with("unknown_service") => builder.with_service_name(name),
        _ => builder.with_service_name("trestle"),
    }
    .build()
}

/// Exports until every sender is gone and the queue is empty.
pub(super) async fn run(
    exporter: Exporter,
    mut queue: mpsc::Receiver<SpanData>,
    dropped: Arc<AtomicU64>,
) {
    let mut trouble = Trouble { collector: exporter.collector.as_str(), lost: None };
    loop {
        let batch = receive(&mut queue).await;
        let spans = batch.len() as u64;
        if spans == 0 {
            return;
        }
        let answer = tokio::time::timeout(TIMEOUT, exporter.spans.export(batch)).await;
        let problem = match answer {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("no answer within {} s", TIMEOUT.as_secs())),
        };
        let lost = if problem.is_some() { spans } else { 0 };
        trouble.tell(problem, lost + dropped.swap(0, Ordering::Relaxed));
    }
}

/// Spans that go together; none when there will be no more.
async fn receive(queue: &mut mpsc::Receiver<SpanData>) -> Vec<SpanData> {
    let mut batch = Vec::new();
    if queue.recv_many(&mut batch, BATCH).await == 0 {
        return batch;
    }
    let until = Instant::now() + GATHER;
    while batch.len() < BATCH {
        let left = until.saturating_duration_since(Instant::now());
        let room = BATCH - batch.len();
        match tokio::time::timeout(left, queue.recv_many(&mut batch, room)).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => break,
        }
    }
    batch
}

/// Says once that spans get lost, and once that they do not any more.
struct Trouble<'a> {
    collector: &'a str,
    /// How many since it was said.
    lost: Option<u64>,
}

impl Trouble<'_> {
    fn tell(&mut self, problem: Option<String>, lost: u64) {
        let collector = self.collector;
        match (&mut self.lost, problem) {
            (Some(so_far), _) if lost > 0 => *so_far += lost,
            (Some(so_far), None) => {
                tracing::info!(collector, lost = *so_far, "the collector takes spans again");
                self.lost = None;
            }
            (Some(_), Some(_)) => {}
            (None, Some(reason)) => {
                tracing::warn!(
                    collector,
                    reason,
                    "spans cannot be exported; deliveries go on without them. It must take OTLP over HTTP, by default on port 4318"
                );
                self.lost = Some(lost);
            }
            (None, None) if lost > 0 => {
                tracing::warn!(collector, lost, "the collector is too slow: spans are dropped");
                self.lost = Some(lost);
            }
            (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_go_below_the_address_of_the_collector() {
        for (endpoint, expected) in [
            ("http://collector:4318", "http://collector:4318/v1/traces"),
            ("https://example/otlp/", "https://example/otlp/v1/traces"),
        ] {
            assert_eq!(address(endpoint).unwrap().as_str(), expected);
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_its_secret() {
        for wrong in [
            "collector:4318",
            "grpc://collector:4317",
            "http://u:hunter2@collector:4318",
            "http://collector:4318/v1/traces",
        ] {
            let message = build(wrong).err().unwrap().to_string();
            assert!(message.starts_with("`telemetry.otlp_endpoint` must "), "{message}");
            assert!(!message.contains("hunter2"), "{message}");
        }
    }

    #[test]
    fn trouble_is_told_once_and_its_end_once() {
        let mut trouble = Trouble { collector: "c", lost: None };
        trouble.tell(Some("away".to_owned()), 5);
        trouble.tell(Some("away".to_owned()), 2);
        assert_eq!(trouble.lost, Some(7));
        trouble.tell(None, 3);
        assert_eq!(trouble.lost, Some(10), "it is too slow still");
        trouble.tell(None, 0);
        assert_eq!(trouble.lost, None);
    }
}
