//! Kafka: one idempotent producer for each rail, whose records stay in lane order.
//!
//! This file is the rail as the relay sees it. A lane goes to the `courier`, which knows the
//! `carrier` (a producer and its thread) of the moment, replaces it (`succession`) and asks about a
//! topic (`inquiry`) before it is first used; `hand_over` makes records of rows; `callbacks` report
//! what became of them. `topics`, `headers`, `size`, `classify` with `codes`, and `properties` with
//! `refused` are decisions without a client, for any way to deliver to Kafka. `reader` reads a topic
//! from end to end, for `trestle verify`, and `examination` asks what `trestle doctor` wants to know, with
//! `authorized` for what we may and a `witness` that remembers why no broker answers.

mod acquaintance;
mod authorized;
mod callbacks;
mod carrier;
mod classify;
mod codes;
mod courier;
mod exactly_once;
mod examination;
mod hand_over;
mod headers;
mod inquiry;
mod letter_room;
mod properties;
mod reader;
mod redact;
mod refused;
mod settings;
mod size;
mod state;
mod succession;
#[cfg(test)]
mod testing;
mod topics;
mod trouble;
mod under_way;
mod witness;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rdkafka::error::KafkaError;

use super::Rail;
use crate::config::{ConfigError, KafkaRailConfig};
use crate::delivery::{DEAD_LETTERS, Failure, Lane, Row};
pub use authorized::Operation;
use courier::Courier;
pub use exactly_once::{ExactlyOnceRail, asking_id, examine_transactions, register_topic};
pub use examination::{Cluster, TopicFacts, TopicSettings, Trouble, examine};
pub use reader::{ReadError, Reader, Record, Span};
use settings::Settings;
use topics::{Topics, check_name};

/// A Kafka rail: `delivery = "idempotent"`.
pub struct KafkaRail {
    courier: Arc<Courier>,
    only_destination: Option<Arc<str>>,
}

impl KafkaRail {
    /// The rail called `name`. Finds wrong properties; whether a broker is there shows later.
    pub fn new(name: &str, config: &KafkaRailConfig) -> Result<Self, ConfigError> {
        Self::make(name, &format!("rails.{name}"), config, Topics::new(name, config)?)
    }

    /// The rail that carries dead letters: same brokers and properties, but all go to `topic`.
    pub fn for_dead_letters(config: &KafkaRailConfig, topic: &str) -> Result<Self, ConfigError> {
        let topics = Topics::fixed("dlq.topic", topic)?;
        let rail = Self::make(DEAD_LETTERS, DEAD_LETTERS, config, topics)?;
        letter_room::look(Arc::clone(&rail.courier.settings), topic, config);
        Ok(rail)
    }

    fn make(
        name: &str,
        key: &str,
        config: &KafkaRailConfig,
        topics: Topics,
    ) -> Result<Self, ConfigError> {
        let settings = Settings::new(name, key, config, topics)?;
        let only_destination = settings.topics.only().map(|topic| destination(name, &topic));
        let (questions, asked) = mpsc::channel();
        let courier = Arc::new(Courier::new(settings, questions));
        let wrong = |message: String| ConfigError::Wrong {
            key: format!("{key}.properties"),
            problem: format!("are not taken by librdkafka: {message}"),
        };
        inquiry::start(Arc::downgrade(&courier), asked)
            .map_err(|error| wrong(error.to_string()))?;
        let redacted = |error: KafkaError| courier.settings.log.redactor.redact(&error.to_string());
        courier.open().map_err(|error| wrong(redacted(error)))?;
        Ok(Self { courier, only_destination })
    }
}

/// Every topic that is known by name: the usual one first, unless it depends on the tenant.
pub fn known_topics(rail: &str, config: &KafkaRailConfig) -> Result<Vec<String>, ConfigError> {
    let usual = usual_topic(rail, config)?;
    Ok(usual.into_iter().chain(config.topics.iter().cloned()).collect())
}

/// The topic of rows that name none, unless it depends on the tenant.
pub fn usual_topic(rail: &str, config: &KafkaRailConfig) -> Result<Option<String>, ConfigError> {
    Ok(Topics::new(rail, config)?.usual().map(str::to_owned))
}

fn destination(rail: &str, topic: &str) -> Arc<str> {
    format!("{rail}:{topic}").into()
}

impl Rail for KafkaRail {
    fn destination(&self, row: &Row) -> Result<Arc<str>, Failure> {
        if let Some(only) = &self.only_destination
            && row.header(topics::HEADER).is_none()
        {
            return Ok(Arc::clone(only));
        }
        let settings = &self.courier.settings;
        settings.topics.of(row).map(|topic| destination(&settings.log.rail, &topic))
    }

    fn only_destination(&self) -> Option<Arc<str>> {
        self.only_destination.clone()
    }

    fn longest_send(&self) -> Duration {
        self.courier.settings.timeout
    }

    fn capacity(&self) -> usize {
        self.courier.settings.capacity
    }

    fn deliver(&self, lane: Arc<Lane>) {
        self.courier.take(lane, 0);
    }

    fn abandon(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.courier.close();
        Box::pin(self.courier.closed())
    }
}

impl Drop for KafkaRail {
    fn drop(&mut self) {
        self.courier.close();
    }
}

#[cfg(test)]
mod tests {
    use super::testing::config;
    use super::*;

    #[test]
    fn properties_that_librdkafka_takes_one_by_one_but_not_together_are_found_at_once() {
        let config = config(
            "[properties]\n\"security.protocol\" = \"ssl\"\n\"ssl.ca.location\" = \"/nowhere\"",
        );
        let error = KafkaRail::new("sepa", &config).err().unwrap().to_string();
        assert!(
            error.starts_with("`rails.sepa.properties` are not taken by librdkafka"),
            "{error}"
        );
    }

    #[test]
    fn a_destination_is_the_rail_and_the_topic() {
        let rail = KafkaRail::new("sepa", &config("")).unwrap();
        assert_eq!(&*rail.destination(&Row::example(1)).unwrap(), "sepa:t");
        assert_eq!(rail.only_destination().as_deref(), Some("sepa:t"));
        let rail = KafkaRail::new("sepa", &config("topics = [\"u\"]")).unwrap();
        assert_eq!(rail.only_destination(), None);
    }
}
