//! Spans: one for each attempt that the ledger has, in the trace of the row's producer, sent to a
//! collector by OTLP.
//!
//! A row without trace context, or one whose producer did not sample its trace, has none. Whatever
//! becomes of the collector, a delivery never waits for it.

mod exporter;
mod span;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_sdk::trace::SpanData;
use reqwest::Url;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use span::Attempt;

use crate::config::{Config, ConfigError, RailConfig};
use crate::delivery::DEAD_LETTERS;

/// What waits for the collector. Beyond it, spans are dropped and counted.
const QUEUE: usize = 2_048;
/// How long the end of the process waits for the collector.
const FLUSH_PATIENCE: Duration = Duration::from_secs(3);

/// Takes spans, without ever waiting.
#[derive(Debug, Clone)]
pub struct Spans {
    queue: mpsc::Sender<SpanData>,
    dropped: Arc<AtomicU64>,
    /// Rails whose receipts are the place of a record.
    kafka_rails: Arc<HashSet<String>>,
}

/// The task that brings spans to the collector.
#[derive(Debug)]
pub struct Exporting(JoinHandle<()>);

/// Nothing where no collector is configured. Whether one is there shows later.
pub fn start(config: &Config) -> Result<Option<(Spans, Exporting)>, ConfigError> {
    let Some(endpoint) = &config.telemetry.otlp_endpoint else { return Ok(None) };
    let exporter = exporter::build(endpoint)?;
    let (queue, waiting) = mpsc::channel(QUEUE);
    let dropped = Arc::new(AtomicU64::new(0));
    let task = tokio::spawn(exporter::run(exporter, waiting, Arc::clone(&dropped)));
    let kafka_rails = Arc::new(kafka_rails(config));
    Ok(Some((Spans { queue, dropped, kafka_rails }, Exporting(task))))
}

/// Finds out what is wrong with the address of the collector, and says where it is. Nothing is sent.
pub fn check(config: &Config) -> Result<Option<Url>, ConfigError> {
    let endpoint = config.telemetry.otlp_endpoint.as_deref();
    endpoint.map(|endpoint| Ok(exporter::build(endpoint)?.collector)).transpose()
}

impl Spans {
    /// An attempt that was written to the ledger.
    pub fn attempt(&self, attempt: &Attempt<'_>) {
        let to_kafka = self.kafka_rails.contains(attempt.rail);
        let Some(span) = span::of(attempt, to_kafka) else { return };
        if self.queue.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Exporting {
    /// Exports what is left, for as long as [`FLUSH_PATIENCE`]. Every [`Spans`] must be gone.
    pub async fn finish(self) {
        if tokio::time::timeout(FLUSH_PATIENCE, self.0).await.is_err() {
            tracing::warn!("the collector does not answer: the last spans are lost");
        }
    }
}

fn kafka_rails(config: &Config) -> HashSet<String> {
    let kafka = config.rails.iter().filter(|(_, rail)| matches!(rail, RailConfig::Kafka(_)));
    kafka.map(|(name, _)| name.clone()).chain([DEAD_LETTERS.to_owned()]).collect()
}
