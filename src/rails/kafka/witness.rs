//! Remembers why no broker answers, for clients that only read or ask.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::callbacks::Log;
use super::classify::error_code;
use super::trouble::{says_more, telling};

/// How long is waited for a reason that may not come.
const HEARING: Duration = Duration::from_millis(300);

/// The context of such a client.
pub(super) struct Witness {
    log: Log,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    trouble: Option<(Code, String)>,
    /// No broker is left that could answer.
    all_down: bool,
    admitted: bool,
}

impl Witness {
    pub(super) fn new(log: Log) -> Self {
        Self { log, seen: Mutex::default() }
    }

    /// Waits until librdkafka has said why something failed: that reaches us by `poll` alone. Not
    /// every failure has such a reason.
    pub(super) fn listen(&self, mut poll: impl FnMut(Duration)) {
        let until = Instant::now() + HEARING;
        while self.seen().trouble.is_none() && Instant::now() < until {
            poll(HEARING / 30);
        }
    }

    /// What librdkafka said that tells most, and our code for it; `code` is what its call failed with.
    pub(super) fn told(&self, code: Code) -> (String, String) {
        match &self.seen().trouble {
            Some((told, reason)) => (error_code(*told), reason.clone()),
            None => (error_code(code), code.to_string()),
        }
    }

    pub(super) fn why(&self, code: Code) -> String {
        let (code, reason) = self.told(code);
        format!("{code}: {reason}")
    }

    /// Whether a producer has the number without which it cannot write.
    pub(super) fn is_admitted(&self) -> bool {
        self.seen().admitted
    }

    pub(super) fn all_down(&self) -> bool {
        self.seen().all_down
    }

    /// Something came: what was wrong before is over.
    pub(super) fn forget(&self) {
        *self.seen() = Seen::default();
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Witness {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        self.log.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        let mut seen = self.seen();
        match error.rdkafka_error_code() {
            // It follows the error of the last broker and says less.
            Some(Code::AllBrokersDown) => seen.all_down = true,
            Some(code) => {
                let reason = self.log.redactor.redact(reason);
                let code = telling(code, &reason);
                if !seen.trouble.as_ref().is_some_and(|(before, _)| says_more(*before, code)) {
                    seen.trouble = Some((code, reason));
                }
            }
            None => {}
        }
        drop(seen);
        self.log.error(error, reason);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        let statistics: serde_json::Value = serde_json::from_slice(statistics).unwrap_or_default();
        self.seen().admitted |= statistics["eos"]["idemp_state"] == "Assigned";
    }
}

impl ConsumerContext for Witness {}

impl ProducerContext for Witness {
    type DeliveryOpaque = ();

    /// It writes nothing.
    fn delivery(&self, _result: &DeliveryResult<'_>, _opaque: ()) {}
}
