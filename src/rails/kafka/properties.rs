//! What librdkafka is told: the user's properties, and ours that keep the promises.

use std::time::Duration;

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use super::refused;
use crate::config::{ConfigError, KafkaRailConfig};

/// librdkafka's default.
const DEFAULT_BATCH_BYTES: usize = 1_000_000;

/// A user may change these. murmur2_random is what Java's producers do, so that whoever else
/// writes to the topic puts a participant into the same partition; librdkafka's own default does
/// not. The relay hands over many rows at once, and what comes while requests are under way goes
/// together anyway: a linger of 1 ms tripled the time of a lone row and made bursts no faster.
/// A topic that is misspelt is missing: no broker shall make it up.
const DEFAULTS: &[(&str, &str)] = &[
    ("client.id", "trestle"),
    ("partitioner", "murmur2_random"),
    ("linger.ms", "0"),
    ("allow.auto.create.topics", "false"),
];

/// Nobody may change these. `enable.gapless.guarantee` stops the producer at the first batch that a
/// broker refuses: without it, librdkafka goes on with the records behind it, and rows overtake.
/// Without `message.timeout.ms` nothing expires inside librdkafka: our deadlines purge everything.
const OURS: &[(&str, &str)] = &[
    ("enable.idempotence", "true"),
    ("acks", "all"),
    ("enable.gapless.guarantee", "true"),
    ("message.timeout.ms", "0"),
];

/// librdkafka assigns partitions only to who names a group; this one is never joined and has no
/// offsets. What was fetched ahead is bounded, because a reader of millions has little memory.
const READING: &[(&str, &str)] = &[
    ("group.id", "trestle-verify"),
    ("enable.auto.commit", "false"),
    ("enable.auto.offset.store", "false"),
    ("isolation.level", "read_committed"),
    ("enable.partition.eof", "true"),
    // Where retention deletes what is about to be read, what is left is read.
    ("auto.offset.reset", "earliest"),
    ("queued.max.messages.kbytes", "4096"),
    // A full queue is empty again in a moment, not after librdkafka's second.
    ("fetch.queue.backoff.ms", "2"),
    ("fetch.max.bytes", "4194304"),
    ("max.partition.fetch.bytes", "524288"),
];

/// How much longer than its records a transaction may take.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(5);

/// librdkafka warns of these in a consumer.
const PRODUCERS_OWN: &[&str] = &[
    "partitioner",
    "linger.ms",
    "queue.buffering.max.ms",
    "queue.buffering.max.messages",
    "queue.buffering.max.kbytes",
    "batch.size",
    "batch.num.messages",
    "compression.codec",
    "compression.type",
    "compression.level",
];

/// What a producer's batches may look like, as far as the topics demand it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    /// No batch may be larger than the smallest `max.message.bytes` of a topic in use.
    pub(super) batch_bytes: usize,
    /// One record in a batch: a refusal is then the record's own.
    pub(super) alone: bool,
}

/// The properties of one rail.
#[derive(Debug)]
pub(super) struct Properties {
    common: ClientConfig,
    /// What the user's properties alone say about a batch.
    batch_bytes: usize,
}

impl Properties {
    /// `key` is where the rail is configured: `rails.sepa`.
    pub(super) fn new(key: &str, config: &KafkaRailConfig) -> Result<Self, ConfigError> {
        let mut common = ClientConfig::new();
        common.set_log_level(RDKafkaLogLevel::Info);
        common.set("bootstrap.servers", config.brokers.as_deref().unwrap_or_default());
        for (name, value) in DEFAULTS {
            common.set(*name, *value);
        }
        for (name, value) in &config.properties {
            let problem = refused::why(config, name, value.expose())
                .or_else(|| not_taken(name, value.expose()));
            if let Some(problem) = problem {
                return Err(ConfigError::Wrong {
                    key: format!("{key}.properties.{name:?}"),
                    problem,
                });
            }
            // An alias would be set besides the default of its other name, in no certain order.
            if name == "queue.buffering.max.ms" {
                common.remove("linger.ms");
            }
            common.set(name, value.expose());
        }
        let batch_bytes = common.get("batch.size").and_then(|size| size.parse().ok());
        Ok(Self { common, batch_bytes: batch_bytes.unwrap_or(DEFAULT_BATCH_BYTES) })
    }

    /// Where nothing is known against it.
    pub(super) fn usual_shape(&self) -> Shape {
        Shape { batch_bytes: self.batch_bytes, alone: false }
    }

    pub(super) fn producer(&self, shape: Shape) -> ClientConfig {
        let mut config = self.common.clone();
        for (name, value) in OURS {
            config.set(*name, *value);
        }
        config.set("batch.size", shape.batch_bytes.to_string());
        if shape.alone {
            config.set("batch.num.messages", "1");
        }
        config
    }

    /// For a producer whose records are seen together or not at all.
    pub(super) fn transactional(&self, shape: Shape, id: &str, timeout: Duration) -> ClientConfig {
        let mut config = self.producer(shape);
        // A broker ends a transaction that its owner has forgotten.
        let timeout_ms = (timeout + FORGOTTEN_AFTER).as_millis().to_string();
        // A record that fails stops its whole transaction anyway.
        config.remove("enable.gapless.guarantee");
        config.set("transactional.id", id);
        config.set("transaction.timeout.ms", &timeout_ms);
        config.set("message.timeout.ms", &timeout_ms);
        config
    }

    /// For a client that reads: without what only a producer understands, and from leaders alone, because
    /// a replica nearby may be behind.
    pub(super) fn consumer(&self) -> ClientConfig {
        let mut config = self.common.clone();
        config.remove("client.rack");
        for name in PRODUCERS_OWN {
            config.remove(name);
        }
        config
    }

    /// For a client that only asks questions.
    pub(super) fn admin(&self) -> ClientConfig {
        self.common.clone()
    }

    /// For a consumer that reads partitions from end to end and leaves no trace.
    pub(super) fn reader(&self) -> ClientConfig {
        let mut config = self.common.clone();
        for (name, value) in READING {
            config.set(*name, *value);
        }
        config
    }
}

/// Whether librdkafka knows the property and takes the value; the value itself is never told.
fn not_taken(name: &str, value: &str) -> Option<String> {
    let mut config = ClientConfig::new();
    config.set(name, value);
    match config.create_native_config() {
        Ok(_) => None,
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
            Some("is not a property of librdkafka, or not of this build".to_owned())
        }
        Err(_) => Some("has a value that librdkafka does not take".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::config;
    use super::*;

    fn wrong(property: &str) -> String {
        let config = config(&format!("max_in_flight = 100\n[properties]\n{property}"));
        Properties::new("rails.sepa", &config).unwrap_err().to_string()
    }

    #[test]
    fn what_would_break_a_promise_is_refused_with_the_reason() {
        for (property, reason) in [
            ("\"acks\" = \"1\"", "all in-sync replicas"),
            ("\"request.required.acks\" = \"1\"", "all in-sync replicas"),
            ("\"enable.idempotence\" = \"false\"", "idempotent"),
            ("\"enable.gapless.guarantee\" = \"false\"", "idempotent"),
            ("\"max.in.flight\" = \"9\"", "idempotent"),
            ("\"retries\" = \"0\"", "idempotent"),
            ("\"message.timeout.ms\" = \"1\"", "delivery_timeout_seconds"),
            ("\"delivery.timeout.ms\" = \"1\"", "delivery_timeout_seconds"),
            ("\"transactional.id\" = \"x\"", "`delivery`"),
            ("\"partitioner\" = \"random\"", "one partition"),
            ("\"queue.buffering.max.messages\" = \"99\"", "max_in_flight, 100"),
            ("\"bootstrap.servers\" = \"x\"", "`brokers`"),
            ("\"queuing.strategy\" = \"lifo\"", "later rows first"),
            ("\"dr_cb\" = \"x\"", "what became of a row"),
            ("\"linger.ms\" = \"10000\"", "half of delivery_timeout_seconds"),
        ] {
            let message = wrong(property);
            let (name, _) = property.split_once(" = ").unwrap();
            assert!(message.contains(&format!("`rails.sepa.properties.{name}`")), "{message}");
            assert!(message.contains(reason), "{message}");
        }
    }

    #[test]
    fn a_property_that_librdkafka_refuses_is_named_without_its_value() {
        let message = wrong("\"sasl.pasword\" = \"hunter2\"");
        assert!(message.contains("\"sasl.pasword\"` is not a property"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
        let message = wrong("\"security.protocol\" = \"hunter2\"");
        assert!(message.contains("librdkafka does not take"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }

    #[test]
    fn who_looks_for_evidence_reads_from_leaders() {
        let config =
            config("[properties]\n\"client.rack\" = \"a\"\n\"socket.timeout.ms\" = \"7000\"");
        let consumer = Properties::new("rails.sepa", &config).unwrap().consumer();
        assert_eq!(consumer.get("client.rack"), None);
        assert_eq!(consumer.get("socket.timeout.ms"), Some("7000"));
    }

    #[test]
    fn a_producer_has_the_users_properties_and_ours() {
        let config = config("[properties]\n\"linger.ms\" = \"7\"\n\"batch.size\" = \"5000\"");
        let properties = Properties::new("rails.sepa", &config).unwrap();
        let shape = properties.usual_shape();
        let producer = properties.producer(shape);
        for (name, value) in [
            ("linger.ms", "7"),
            ("batch.size", "5000"),
            ("acks", "all"),
            ("message.timeout.ms", "0"),
        ] {
            assert_eq!(producer.get(name), Some(value), "{name}");
        }
        assert_eq!(producer.get("batch.num.messages"), None);
        let alone = properties.producer(Shape { alone: true, ..shape });
        assert_eq!(alone.get("batch.num.messages"), Some("1"));
    }
}
