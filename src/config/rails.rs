//! `[rails.*]` and `[dlq]`: where rows go, and what a failure means there.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{SchemaChoice, Secret};
use crate::delivery::Class;

/// One rail. Its name in the configuration is the `rail_type` that rows carry.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum RailConfig {
    Kafka(KafkaRailConfig),
    Http(HttpRailConfig),
}

/// Whether the rows of a lane wait for each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ordering {
    #[default]
    Strict,
    None,
}

/// What a FAILED row does to its lane.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailed {
    /// The row goes to the DLQ and the lane goes on.
    #[default]
    Skip,
    /// The lane stops until an operator decides.
    Halt,
}

/// What a Kafka rail promises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// At least once, with an idempotent producer.
    #[default]
    Idempotent,
    /// Each row once, for consumers that read committed records: docs/exactly-once.md.
    ExactlyOnce,
}

/// Which headers a Kafka record carries besides ours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HeaderStyle {
    #[default]
    Cloudevents,
    Debezium,
    Both,
}

/// `kind = "kafka"`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct KafkaRailConfig {
    /// Read before the rest, to know which rail this is.
    kind: String,
    #[serde(default)]
    pub ordering: Ordering,
    #[serde(default)]
    pub on_failed: OnFailed,
    #[serde(default)]
    pub delivery: Delivery,
    #[serde(default)]
    pub schema: SchemaChoice,
    /// Another class for an error: `KAFKA_TOPIC_AUTHORIZATION_FAILED = "terminal"`.
    #[serde(default)]
    pub codes: BTreeMap<String, Class>,
    /// `host:port,host:port`; without it, `KAFKA_BROKERS`.
    pub brokers: Option<String>,
    /// May contain `{rail_type}` and `{tenant}`.
    pub topic: String,
    /// Other topics that a row may name in its header `topic`.
    #[serde(default)]
    pub topics: Vec<String>,
    #[serde(default)]
    pub headers: HeaderStyle,
    /// `ce_source` of the records.
    #[serde(default = "default_source")]
    pub source: String,
    /// How long a record may be under way before it is given up as in doubt.
    #[serde(default = "default_delivery_timeout")]
    pub delivery_timeout_seconds: u64,
    /// How many rows can be under way at once.
    #[serde(default = "default_in_flight")]
    pub max_in_flight: usize,
    /// Into how many shards the lanes are parted, with `delivery = "exactly_once"`.
    #[serde(default = "default_shards")]
    pub shards: i16,
    /// What the transactional ids begin with.
    #[serde(default = "default_transactional_id_prefix")]
    pub transactional_id_prefix: String,
    /// The topic that remembers the last batch of each shard; without it, `trestle.register.` and the
    /// rail's name.
    pub register_topic: Option<String>,
    /// Any property of librdkafka.
    #[serde(
        default,
        deserialize_with = "super::secret::properties",
        serialize_with = "super::shown::properties"
    )]
    pub properties: BTreeMap<String, Secret>,
}

/// `kind = "http"`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRailConfig {
    /// Read before the rest, to know which rail this is.
    kind: String,
    #[serde(default)]
    pub ordering: Ordering,
    #[serde(default)]
    pub on_failed: OnFailed,
    #[serde(default)]
    pub schema: SchemaChoice,
    /// Another class for a status or the rail's own code: `HTTP_500 = "unavailable"`.
    #[serde(default)]
    pub codes: BTreeMap<String, Class>,
    #[serde(serialize_with = "super::shown::url")]
    pub url: String,
    #[serde(default = "default_http_timeout")]
    pub timeout_seconds: u64,
    /// How many requests can be under way at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// At most so many requests start in a second.
    pub requests_per_second: Option<u32>,
    #[serde(default = "default_idempotency_header")]
    pub idempotency_header: String,
    /// Whether the key stands in double quotes.
    #[serde(default)]
    pub idempotency_quoted: bool,
    /// How long the receiver remembers a key. A row that is older is not sent again.
    pub idempotency_ttl_seconds: Option<u64>,
    pub bearer_token: Option<Secret>,
    /// Standard Webhooks secrets (`whsec_…`), the newest first.
    #[serde(default)]
    pub signing_secrets: Vec<Secret>,
    /// A private certificate authority, PEM.
    pub ca_file: Option<PathBuf>,
    /// A client certificate with its chain, PEM.
    pub client_certificate_file: Option<PathBuf>,
    /// The client certificate's key, PEM.
    pub client_key_file: Option<PathBuf>,
    /// `ce-source` of the requests.
    #[serde(default = "default_source")]
    pub source: String,
    /// Where the answer has the receiver's reference: `/payment/id`.
    pub reference_pointer: Option<String>,
    /// Where the answer has the receiver's own code: `/error/code`.
    pub code_pointer: Option<String>,
}

/// `[dlq]`: who carries dead letters. Without it, another worker does.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DlqConfig {
    /// The name of a Kafka rail, or `ledger`.
    pub rail: String,
    /// Needed unless the rail is `ledger`.
    pub topic: Option<String>,
}

/// The rail that keeps dead letters where they are.
pub(super) const LEDGER: &str = "ledger";

impl DlqConfig {
    /// Whether nobody carries dead letters: the FAILED row in the ledger is the dead letter.
    pub fn is_ledger(&self) -> bool {
        self.rail == LEDGER
    }
}

fn default_source() -> String {
    "trestle".to_owned()
}

const fn default_delivery_timeout() -> u64 {
    20
}

const fn default_in_flight() -> usize {
    4_000
}

const fn default_shards() -> i16 {
    16
}

fn default_transactional_id_prefix() -> String {
    "trestle".to_owned()
}

const fn default_http_timeout() -> u64 {
    30
}

const fn default_concurrency() -> usize {
    16
}

fn default_idempotency_header() -> String {
    "Idempotency-Key".to_owned()
}

impl RailConfig {
    pub fn ordering(&self) -> Ordering {
        match self {
            Self::Kafka(rail) => rail.ordering,
            Self::Http(rail) => rail.ordering,
        }
    }

    pub fn on_failed(&self) -> OnFailed {
        match self {
            Self::Kafka(rail) => rail.on_failed,
            Self::Http(rail) => rail.on_failed,
        }
    }

    pub fn schema(&self) -> &SchemaChoice {
        match self {
            Self::Kafka(rail) => &rail.schema,
            Self::Http(rail) => &rail.schema,
        }
    }

    pub fn delivery(&self) -> Delivery {
        match self {
            Self::Kafka(rail) => rail.delivery,
            Self::Http(_) => Delivery::Idempotent,
        }
    }

    /// Into how many shards its lanes are parted, where they are.
    pub fn shards(&self) -> i16 {
        match self {
            Self::Kafka(rail) => rail.shards,
            Self::Http(_) => default_shards(),
        }
    }

    /// The longest that one row can be under way.
    pub fn longest_send(&self) -> Duration {
        match self {
            Self::Kafka(rail) => Duration::from_secs(rail.delivery_timeout_seconds),
            Self::Http(rail) => Duration::from_secs(rail.timeout_seconds),
        }
    }
}
