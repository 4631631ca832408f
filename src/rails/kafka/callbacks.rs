//! What librdkafka tells us: deliveries, errors, log lines.

use std::sync::{Arc, OnceLock, Weak};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::producer::{DeliveryResult, ProducerContext};
use rdkafka::types::RDKafkaErrorCode as Code;
use tracing::{debug, error, info, warn};

use super::acquaintance::Acquaintance;
use super::courier::{Courier, give_back};
use super::redact::Redactor;
use super::settings::Settings;
use super::trouble::Trouble;
use crate::delivery::{Failure, Lane, Outcome, Place};
use crate::failpoint::failpoint;

/// librdkafka warns whoever uses it, at every start; we know, and it is not the operator's doing.
const EXPERIMENTAL: &str = "enable.gapless.guarantee is experimental";

/// What travels with a record, so that its answer finds its row.
pub(super) struct Parcel {
    pub(super) lane: Arc<Lane>,
    pub(super) index: usize,
    pub(super) topic: Arc<str>,
    pub(super) acquaintance: Arc<Acquaintance>,
    /// Whether the row behind it is sent only after it.
    pub(super) next_waits: bool,
}

/// Log lines of librdkafka, for every kind of client.
#[derive(Clone)]
pub(super) struct Log {
    pub(super) rail: Arc<str>,
    pub(super) redactor: Arc<Redactor>,
}

impl ClientContext for Log {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        let (rail, message) = (&*self.rail, self.redactor.redact(message));
        match level {
            _ if facility == "CONFWARN" && message.contains(EXPERIMENTAL) => {}
            // A new owner of a shard waits until the transaction of the one before has ended.
            _ if facility == "GETPID" => debug!(rail, facility, "librdkafka: {message}"),
            RDKafkaLogLevel::Emerg
            | RDKafkaLogLevel::Alert
            | RDKafkaLogLevel::Critical
            | RDKafkaLogLevel::Error => error!(rail, facility, "librdkafka: {message}"),
            RDKafkaLogLevel::Warning => warn!(rail, facility, "librdkafka: {message}"),
            RDKafkaLogLevel::Notice | RDKafkaLogLevel::Info => {
                info!(rail, facility, "librdkafka: {message}");
            }
            RDKafkaLogLevel::Debug => debug!(rail, facility, "librdkafka: {message}"),
        }
    }

    /// librdkafka logs these too.
    fn error(&self, error: KafkaError, reason: &str) {
        debug!(rail = &*self.rail, "librdkafka: {error}: {}", self.redactor.redact(reason));
    }

    fn stats_raw(&self, _statistics: &[u8]) {}
}

/// The callbacks of one producer. They run in its polling thread.
pub(super) struct Callbacks {
    settings: Arc<Settings>,
    courier: Weak<Courier>,
    /// Whether every record is alone in its batch.
    alone: bool,
    /// Why its rows are purged. Set before they are.
    pub(super) cause: OnceLock<Failure>,
    /// Why brokers cannot be reached.
    pub(super) trouble: Trouble,
}

impl Callbacks {
    pub(super) fn new(settings: Arc<Settings>, courier: Weak<Courier>, alone: bool) -> Self {
        let (cause, trouble) = (OnceLock::new(), Trouble::default());
        Self { settings, courier, alone, cause, trouble }
    }

    fn delivered(&self, message: &BorrowedMessage<'_>, parcel: &Parcel) -> Outcome {
        let (topic, partition) = (&parcel.topic, message.partition());
        if !parcel.acquaintance.make(partition)
            && let Some(courier) = self.courier.upgrade()
        {
            courier.distrust(topic, false);
        }
        let reference = reference(topic, partition, message.offset());
        Outcome::Delivered { reference: Some(reference), rail_code: None }
    }

    fn failed(&self, code: Code, topic: &Arc<str>) -> Outcome {
        if let (Code::PurgeQueue | Code::PurgeInflight, Some(cause)) = (code, self.cause.get()) {
            return Outcome::Unavailable { failure: cause.clone(), maybe_sent: true };
        }
        let (outcome, refused) = self.settings.classes.after_hand_over(code, self.alone);
        if let Some(courier) = self.courier.upgrade() {
            courier.distrust(topic, refused && !self.alone);
        }
        outcome
    }
}

impl ClientContext for Callbacks {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.settings.log.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        match error.rdkafka_error_code() {
            // It follows the error of the last broker and says less.
            Some(Code::AllBrokersDown) | None => {}
            Some(code) => self.trouble.heard(code, reason),
        }
        self.settings.log.error(error, reason);
    }

    fn stats_raw(&self, _statistics: &[u8]) {}
}

impl ProducerContext for Callbacks {
    type DeliveryOpaque = Box<Parcel>;

    fn delivery(&self, result: &DeliveryResult<'_>, parcel: Box<Parcel>) {
        // The first place where a record has certainly left us.
        failpoint("sent");
        let outcome = match result {
            Ok(message) => self.delivered(message, &parcel),
            Err((error, _)) => {
                let code = error.rdkafka_error_code().unwrap_or(Code::Unknown);
                self.failed(code, &parcel.topic)
            }
        };
        let Parcel { lane, index, topic, next_waits, .. } = *parcel;
        let goes_on = next_waits && lane.goes_on_after(&outcome);
        lane.report(index, outcome);
        match self.courier.upgrade() {
            Some(courier) if goes_on => courier.go_on(lane, index + 1, &topic, self),
            _ if next_waits => give_back(&lane, index + 1),
            _ => {}
        }
    }
}

/// Without the offset where a broker only said that it has the record already.
pub(super) fn reference(topic: &str, partition: i32, offset: i64) -> String {
    Place { topic, partition, offset: (offset >= 0).then_some(offset) }.to_string()
}

#[cfg(test)]
mod tests {
    use super::reference;

    #[test]
    fn a_reference_never_makes_up_an_offset() {
        assert_eq!(reference("t", 2, 7), "t/2@7");
        assert_eq!(reference("t", 2, -1_001), "t/2");
    }
}
