//! What a cluster says about itself, its topics and our rights, without a record being written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::admin::AdminClient;
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::metadata::{Metadata, MetadataPartition};
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::authorized::{Operation, authorized};
use super::callbacks::Log;
use super::classify::error_code;
use super::inquiry::{describe, found};
use super::properties::Properties;
use super::redact::Redactor;
use super::witness::Witness;
use crate::config::{ConfigError, KafkaRailConfig};

/// How long one question may take.
const QUESTION: Duration = Duration::from_secs(5);
/// How long a producer may take to become one that may write.
const ADMISSION: Duration = Duration::from_secs(5);
/// librdkafka's default.
const MESSAGE_BYTES: u64 = 1_000_000;

/// Why a cluster or a topic cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// `KAFKA_SSL`
    pub code: String,
    pub words: String,
}

/// A cluster that answers.
#[derive(Debug)]
pub struct Cluster {
    pub brokers: usize,
    /// `PLAINTEXT`, `SSL`, `SASL_SSL` …
    pub protocol: String,
    /// The largest record that the rail sends.
    pub message_bytes: u64,
    /// Whether an idempotent producer is let in.
    pub admission: Result<(), Trouble>,
    pub topics: Vec<(String, Result<TopicFacts, Trouble>)>,
}

/// A topic that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicFacts {
    pub partitions: usize,
    pub leaderless: usize,
    /// The fewest that a partition has.
    pub replicas: usize,
    pub in_sync: usize,
    /// None where it may not be read.
    pub settings: Option<TopicSettings>,
    /// What we may do with it; None where the broker does not say.
    pub allowed: Option<Vec<Operation>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicSettings {
    pub min_in_sync: usize,
    pub cleanup_policy: String,
    pub retention_ms: i64,
    pub max_message_bytes: u64,
    pub unclean_election: bool,
}

/// Asks the cluster of a rail about these topics. Takes as long as the cluster does.
pub fn examine(
    rail: &str,
    config: &KafkaRailConfig,
    topics: &[String],
) -> Result<Result<Cluster, Trouble>, ConfigError> {
    let properties = Properties::new(&format!("rails.{rail}"), config)?;
    let log = Log { rail: rail.into(), redactor: Arc::new(Redactor::new(config)) };
    Ok(Examiner::open(&properties, &log).and_then(|examiner| examiner.cluster(topics)))
}

struct Examiner {
    producer: BaseProducer<Witness>,
    admin: AdminClient<Log>,
    protocol: String,
    message_bytes: u64,
}

impl Examiner {
    fn open(properties: &Properties, log: &Log) -> Result<Self, Trouble> {
        let trouble = |error: KafkaError| Trouble {
            code: error_code(error.rdkafka_error_code().unwrap_or(Code::InvalidArgument)),
            words: log.redactor.redact(&error.to_string()),
        };
        let mut config = properties.producer(properties.usual_shape());
        // Its statistics say when it has been let in.
        config.set("statistics.interval.ms", "100");
        let witness = Witness::new(log.clone());
        let producer = BaseProducer::from_config_and_context(&config, witness).map_err(trouble)?;
        let admin = AdminClient::from_config_and_context(&properties.admin(), log.clone());
        let protocol = config.get("security.protocol").unwrap_or("plaintext").to_uppercase();
        let message_bytes = config.get("message.max.bytes").and_then(|bytes| bytes.parse().ok());
        Ok(Self {
            producer,
            admin: admin.map_err(trouble)?,
            protocol,
            message_bytes: message_bytes.unwrap_or(MESSAGE_BYTES),
        })
    }

    fn cluster(&self, topics: &[String]) -> Result<Cluster, Trouble> {
        let mut brokers = self.metadata(topics.first().map(String::as_str))?.brokers().len();
        let mut found = Vec::new();
        for topic in topics {
            let metadata = self.metadata(Some(topic))?;
            brokers = brokers.max(metadata.brokers().len());
            found.push((topic.clone(), self.topic(&metadata, topic)));
        }
        Ok(Cluster {
            brokers,
            protocol: self.protocol.clone(),
            message_bytes: self.message_bytes,
            admission: self.admission(),
            topics: found,
        })
    }

    fn metadata(&self, topic: Option<&str>) -> Result<Metadata, Trouble> {
        let metadata = self.producer.client().fetch_metadata(topic, QUESTION);
        metadata.map_err(|error| {
            self.producer.context().listen(|timeout| self.producer.poll(timeout));
            self.trouble(error.rdkafka_error_code().unwrap_or(Code::BrokerTransportFailure))
        })
    }

    fn topic(&self, metadata: &Metadata, topic: &str) -> Result<TopicFacts, Trouble> {
        let found = found(metadata, topic)
            .map_err(|code| Trouble { code: error_code(code), words: code.to_string() })?;
        let partitions = found.partitions();
        let fewest = |count: fn(&MetadataPartition) -> usize| partitions.iter().map(count).min();
        Ok(TopicFacts {
            partitions: partitions.len(),
            leaderless: partitions.iter().filter(|partition| partition.leader() < 0).count(),
            replicas: fewest(|partition| partition.replicas().len()).unwrap_or(0),
            in_sync: fewest(|partition| partition.isr().len()).unwrap_or(0),
            settings: self.settings(topic),
            allowed: authorized(&self.admin, topic, QUESTION),
        })
    }

    fn settings(&self, topic: &str) -> Option<TopicSettings> {
        let described = describe(&self.admin, topic, QUESTION)?;
        let value = |name: &str| described.get(name).and_then(|entry| entry.value.clone());
        Some(TopicSettings {
            min_in_sync: value("min.insync.replicas")?.parse().ok()?,
            cleanup_policy: value("cleanup.policy")?,
            retention_ms: value("retention.ms")?.parse().ok()?,
            max_message_bytes: value("max.message.bytes")?.parse().ok()?,
            unclean_election: value("unclean.leader.election.enable")
                .is_some_and(|on| on == "true"),
        })
    }

    /// A producer is given a number before it writes anything, unless it may not write.
    fn admission(&self) -> Result<(), Trouble> {
        let until = Instant::now() + ADMISSION;
        let witness = self.producer.context();
        while !witness.is_admitted() {
            self.producer.poll(Duration::from_millis(50));
            if let Some((code, words)) = self.producer.client().fatal_error() {
                return Err(Trouble { code: error_code(code), words });
            }
            if Instant::now() > until {
                return Err(self.trouble(Code::OperationTimedOut));
            }
        }
        Ok(())
    }

    fn trouble(&self, code: Code) -> Trouble {
        let (code, words) = self.producer.context().told(code);
        Trouble { code, words }
    }
}
