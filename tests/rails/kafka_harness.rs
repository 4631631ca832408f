//! The Kafka rail in the conformance suite, with a proxy between it and the real broker.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use serde_json::json;
use trestle::config::KafkaRailConfig;
use trestle::delivery::Row;
use trestle::rails::Rail;
use trestle::rails::kafka::KafkaRail;

use crate::conformance::{Arrival, Harness};
use crate::lanes::{self, Terms, deliver, words};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Record, Topic};

/// What no record may exceed.
const MAX_BYTES: usize = 2_000;
/// The row that makes a rail and its broker known to each other.
const GREETING: &str = "greeting";
const PASSWORD: &str = "password-hunter2";

/// A rail, its topic, and what stands between them.
pub(crate) struct KafkaHarness {
    rail: Arc<KafkaRail>,
    proxy: Proxy,
    topic: Topic,
}

impl KafkaHarness {
    /// A rail that has never met its broker sends nothing; a fault is to meet rows under way.
    async fn greet(&self) {
        let greeting = deliver(&*self.rail, lanes::rows(GREETING, 1), Terms::default());
        assert_eq!(words(&greeting.settled().await), ["delivered"]);
    }

    /// How many records the topic has.
    async fn count(&self) -> usize {
        let name = self.topic.name().to_owned();
        let count = tokio::task::spawn_blocking(move || {
            let brokers = std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is set");
            let mut config = ClientConfig::new();
            let consumer: BaseConsumer =
                config.set("bootstrap.servers", brokers).create().expect("a consumer");
            let (low, high) = consumer
                .fetch_watermarks(&name, 0, Duration::from_secs(30))
                .expect("Kafka answers");
            usize::try_from(high - low).unwrap()
        });
        count.await.unwrap()
    }
}

impl Harness for KafkaHarness {
    async fn start() -> Self {
        let (proxy, topic) = (Proxy::to_kafka(), Topic::new().await);
        let config: KafkaRailConfig = serde_json::from_value(json!({
            "kind": "kafka",
            "brokers": proxy.address(),
            "topic": topic.name(),
            "delivery_timeout_seconds": 2,
            "properties": {
                "message.max.bytes": MAX_BYTES.to_string(),
                "sasl.password": PASSWORD,
            },
        }))
        .unwrap();
        Self { rail: Arc::new(KafkaRail::new("test", &config).unwrap()), proxy, topic }
    }

    fn rail(&self) -> Arc<dyn Rail> {
        Arc::clone(&self.rail) as Arc<dyn Rail>
    }

    fn spoil(&self, row: &mut Row) {
        row.payload = format!("{:MAX_BYTES$}", row.payload);
    }

    async fn go_down(&mut self) {
        self.proxy.set(Mode::TurnAway);
        self.proxy.cut();
    }

    async fn hang(&mut self) {
        self.greet().await;
        self.proxy.set(Mode::Hold);
    }

    async fn lose_answers(&mut self) {
        self.greet().await;
        self.proxy.set(Mode::LoseAnswers);
    }

    async fn arrived(&mut self) -> Vec<Arrival> {
        let records = self.topic.consume(self.count().await).await;
        let own = |record: &Record| record.key.as_deref() != Some(GREETING.as_bytes());
        records.into_iter().filter(own).map(arrival).collect()
    }

    fn secrets(&self) -> Vec<String> {
        vec![PASSWORD.to_owned()]
    }
}

fn arrival(record: Record) -> Arrival {
    let id = record.headers.iter().find(|(name, _)| name == "ce_id");
    let (_, id) = id.expect("a record has an id");
    Arrival {
        outbox_id: String::from_utf8_lossy(id).parse().unwrap(),
        payload: String::from_utf8(record.value).unwrap(),
    }
}
