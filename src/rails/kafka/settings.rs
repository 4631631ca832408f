//! Everything about a rail that does not change while it runs.

use std::sync::Arc;
use std::time::Duration;

use super::callbacks::Log;
use super::classify::Classes;
use super::properties::Properties;
use super::redact::Redactor;
use super::topics::Topics;
use crate::config::{ConfigError, HeaderStyle, KafkaRailConfig};

/// How much of the time-out the purge gets, at most.
const LONGEST_GRACE: Duration = Duration::from_secs(1);
/// How long a question about a topic may take, at most.
const LONGEST_QUESTION: Duration = Duration::from_secs(5);

pub(super) struct Settings {
    pub(super) log: Log,
    pub(super) topics: Topics,
    pub(super) classes: Classes,
    pub(super) properties: Properties,
    pub(super) headers: HeaderStyle,
    pub(super) source: String,
    pub(super) timeout: Duration,
    pub(super) capacity: usize,
}

impl Settings {
    /// `key` is where the rail is configured: `rails.sepa`.
    pub(super) fn new(
        name: &str,
        key: &str,
        config: &KafkaRailConfig,
        topics: Topics,
    ) -> Result<Self, ConfigError> {
        let redactor = Arc::new(Redactor::new(config));
        Ok(Self {
            log: Log { rail: name.into(), redactor },
            topics,
            classes: Classes::new(&format!("{key}.codes"), &config.codes)?,
            properties: Properties::new(key, config)?,
            headers: config.headers,
            source: config.source.clone(),
            timeout: Duration::from_secs(config.delivery_timeout_seconds),
            capacity: config.max_in_flight,
        })
    }

    /// What purging and reporting may take of the time-out.
    pub(super) fn grace(&self) -> Duration {
        (self.timeout / 4).min(LONGEST_GRACE)
    }

    /// The age at which a row is given up, so that it is reported within the time-out.
    pub(super) fn overdue_after(&self) -> Duration {
        self.timeout - self.grace()
    }

    pub(super) fn question_timeout(&self) -> Duration {
        (self.timeout / 2).min(LONGEST_QUESTION)
    }
}
