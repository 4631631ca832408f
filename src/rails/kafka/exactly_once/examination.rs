//! Whether a cluster lets us have transactions, found out without a record being written.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::super::callbacks::Log;
use super::super::classify::error_code;
use super::super::examination::Trouble;
use super::super::properties::Properties;
use super::super::redact::Redactor;
use super::super::witness::Witness;
use super::shared::transactional_id;
use crate::config::{ConfigError, KafkaRailConfig};

/// A cluster makes its topic of transactions when the first producer asks, which takes a while.
const ADMISSION: Duration = Duration::from_secs(10);

/// The id of the producer that only asks. It is under the prefix, so that the same ACL allows it, and no
/// shard's, because each is a number: nobody is fenced off but another who only asks.
pub fn asking_id(rail: &str, config: &KafkaRailConfig) -> String {
    transactional_id(&config.transactional_id_prefix, rail, "doctor")
}

/// Asks the cluster of a rail for a transactional producer, with the time-out of the real ones. It begins
/// no transaction. Takes as long as the cluster does.
pub fn examine_transactions(
    rail: &str,
    config: &KafkaRailConfig,
) -> Result<Result<(), Trouble>, ConfigError> {
    let properties = Properties::new(&format!("rails.{rail}"), config)?;
    let log = Log { rail: rail.into(), redactor: Arc::new(Redactor::new(config)) };
    Ok(admit(&properties, &log, &asking_id(rail, config), config.delivery_timeout_seconds))
}

fn admit(properties: &Properties, log: &Log, id: &str, seconds: u64) -> Result<(), Trouble> {
    let trouble = |code: Code, words: &str| Trouble {
        code: error_code(code),
        words: log.redactor.redact(words),
    };
    let of = |error: KafkaError| {
        trouble(error.rdkafka_error_code().unwrap_or(Code::InvalidArgument), &error.to_string())
    };
    let timeout = Duration::from_secs(seconds);
    let config = properties.transactional(properties.usual_shape(), id, timeout);
    let witness = Witness::new(log.clone());
    let producer = BaseProducer::from_config_and_context(&config, witness).map_err(of)?;
    producer.init_transactions(ADMISSION).map_err(|error| {
        match producer.client().fatal_error() {
            // librdkafka calls it fatal, and says why only there.
            Some((code, words)) => trouble(code, &words),
            None => of(error),
        }
    })
}
