//! What librdkafka tells of the records of one transactional producer.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::super::callbacks::Log;

/// What became of a record: its partition and offset, or why there are none.
pub(super) type Answer = Result<(i32, i64), Code>;

/// Gathers answers for whoever waits for them. They come in the thread that polls the producer.
pub(super) struct Answers {
    log: Log,
    answers: Mutex<Vec<(usize, Answer)>>,
    come: Condvar,
}

impl Answers {
    pub(super) fn new(log: Log) -> Self {
        Self { log, answers: Mutex::default(), come: Condvar::new() }
    }

    /// Those that came since the last call; where there are none, waits for some.
    pub(super) fn wait(&self, longest: Duration) -> Vec<(usize, Answer)> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let none = |answers: &mut Vec<_>| answers.is_empty();
        let waited = self.come.wait_timeout_while(answers, longest, none);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
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
        self.come.notify_one();
    }
}
