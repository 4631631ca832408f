//! What librdkafka tells of the records of one transactional producer.

use std::sync::{Mutex, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::super::callbacks::Log;

/// What became of a record: its partition and offset, or why there are none.
pub(super) type Answer = Result<(i32, i64), Code>;

/// Gathers answers. They come in while the producer is polled, in the thread that polls it.
pub(super) struct Answers {
    log: Log,
    answers: Mutex<Vec<(usize, Answer)>>,
}

impl Answers {
    pub(super) fn new(log: Log) -> Self {
        Self { log, answers: Mutex::new(Vec::new()) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Those that came since the last call.
    pub(super) fn take(&self) -> Vec<(usize, Answer)> {
        std::mem::take(&mut *self.answers.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Answers {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.log.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.log.error(error, reason);
    }

    fn stats_raw(&self, _statistics: &[u8]) {}
}

impl ProducerContext for Answers {
    /// The place of the record in its batch.
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, place: Box<usize>) {
        let answer = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.rdkafka_error_code().unwrap_or(Code::Unknown)),
        };
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).push((*place, answer));
    }
}
