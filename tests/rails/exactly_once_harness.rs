//! The Kafka rail that delivers exactly once, in the conformance suite: one shard, and a database that
//! agrees with everything.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use trestle::delivery::{Denied, Evidence, Places, Reconciled, Row, ShardKeeper, Stand, Tenure};
use trestle::rails::kafka::ExactlyOnceRail;
use trestle::rails::{Rail, Sharded};

use crate::conformance::{Arrival, Harness};
use crate::kafka_harness::{KafkaHarness, MAX_BYTES, PASSWORD, config};
use crate::lanes::{SHARD, last_batch};
use crate::support::Topic;

const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct ExactlyOnceHarness {
    kafka: KafkaHarness,
    _register: Topic,
}

impl Harness for ExactlyOnceHarness {
    const IN_BATCHES: bool = true;

    async fn start() -> Self {
        let register = Topic::unmade();
        let (kafka, rail) = KafkaHarness::with(|proxy, topic| {
            let mut config = config(proxy, topic);
            config["delivery"] = "exactly_once".into();
            config["shards"] = 1.into();
            config["register_topic"] = register.name().into();
            config["transactional_id_prefix"] = topic.name().into();
            // Its producer refuses nothing: what is too large is what the topic does not take.
            config["properties"] =
                json!({ "batch.size": MAX_BYTES.to_string(), "sasl.password": PASSWORD });
            ExactlyOnceRail::new("test", &serde_json::from_value(config).unwrap()).unwrap()
        })
        .await;
        kafka.topic.limit(MAX_BYTES).await;
        rail.begin(Arc::new(Agreeable));
        rail.own(&[Tenure { shard: SHARD, epoch: 1 }]);
        let until = Instant::now() + PATIENCE;
        while rail.ready().is_empty() {
            assert!(Instant::now() < until, "the shard is not ready");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self { kafka, _register: register }
    }

    fn rail(&self) -> Arc<dyn Rail> {
        self.kafka.rail()
    }

    fn spoil(&self, row: &mut Row) {
        self.kafka.spoil(row);
    }

    async fn go_down(&mut self) {
        self.kafka.go_down().await;
    }

    async fn hang(&mut self) {
        self.kafka.hang().await;
    }

    async fn lose_answers(&mut self) {
        self.kafka.lose_answers().await;
    }

    async fn arrived(&mut self) -> Vec<Arrival> {
        self.kafka.arrived().await
    }

    fn secrets(&self) -> Vec<String> {
        self.kafka.secrets()
    }
}

/// In the place of the database, which no rail of this suite has.
struct Agreeable;

impl ShardKeeper for Agreeable {
    fn stand(&self, _: Tenure) -> Result<Stand, Denied> {
        Ok(Stand::default())
    }

    fn note(&self, _: Tenure, _: &Places) -> Result<(), Denied> {
        Ok(())
    }

    fn keep_up(&self, _: Tenure, _: i64, _: &Places) -> Result<(), Denied> {
        Ok(())
    }

    fn reconcile(&self, _: Tenure, _: &Stand, _: &Evidence) -> Result<Reconciled, Denied> {
        Ok(Reconciled { batch: last_batch(), recovered: 0, requeued: 0, halted: None })
    }

    fn halt(&self, _: Tenure, reason: &str) -> Result<(), Denied> {
        panic!("the shard is halted: {reason}")
    }

    fn release(&self, _: Tenure) -> Result<(), Denied> {
        Ok(())
    }

    fn changed(&self) {}
}
