//! The Kafka rail in the conformance suite, with a proxy between it and the real broker.

use std::sync::Arc;

use serde_json::{Value, json};
use trestle::delivery::Row;
use trestle::rails::Rail;
use trestle::rails::kafka::KafkaRail;

use crate::conformance::{Arrival, Harness};
use crate::lanes::{self, Terms, deliver, words};
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Record, Topic};

/// What no record may exceed.
pub(crate) const MAX_BYTES: usize = 2_000;
/// The row that makes a rail and its broker known to each other.
const GREETING: &str = "greeting";
pub(crate) const PASSWORD: &str = "password-hunter2";

/// A rail, its topic, and what stands between them.
pub(crate) struct KafkaHarness {
    rail: Arc<dyn Rail>,
    proxy: Proxy,
    pub(crate) topic: Topic,
}

impl KafkaHarness {
    /// With the rail that `make` makes of them.
    pub(crate) async fn with<R: Rail>(make: impl FnOnce(&Proxy, &Topic) -> R) -> (Self, Arc<R>) {
        let (proxy, topic) = (Proxy::to_kafka(), Topic::new().await);
        let rail = Arc::new(make(&proxy, &topic));
        (Self { rail: Arc::clone(&rail) as Arc<dyn Rail>, proxy, topic }, rail)
    }

    /// A rail that has never met its broker sends nothing; a fault is to meet rows under way.
    async fn greet(&self) {
        let greeting = deliver(&*self.rail, lanes::rows(GREETING, 1), Terms::default());
        assert_eq!(words(&greeting.settled().await), ["delivered"]);
    }
}

/// What every Kafka rail of the suite has.
pub(crate) fn config(proxy: &Proxy, topic: &Topic) -> Value {
    json!({
        "kind": "kafka",
        "brokers": proxy.address(),
        "topic": topic.name(),
        "delivery_timeout_seconds": 2,
        "properties": {
            "message.max.bytes": MAX_BYTES.to_string(),
            "sasl.password": PASSWORD,
        },
    })
}

impl Harness for KafkaHarness {
    async fn start() -> Self {
        let make = |proxy: &Proxy, topic: &Topic| {
            let config = serde_json::from_value(config(proxy, topic)).unwrap();
            KafkaRail::new("test", &config).unwrap()
        };
        Self::with(make).await.0
    }

    fn rail(&self) -> Arc<dyn Rail> {
        Arc::clone(&self.rail)
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
        let records = self.topic.consume_committed().await;
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
