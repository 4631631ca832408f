//! What a Kafka error means for a row: the table, with the user's changes laid over it.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::types::RDKafkaErrorCode as Code;

use super::codes;
use crate::config::ConfigError;
use crate::delivery::{Class, Failure, Outcome};

/// Further away than this, a known name is no plausible reading of an unknown one.
const MAX_TYPOS: usize = 4;
/// How long a row stays away that a full queue refused. Given back at once it would be claimed and refused again, as
/// fast as the database can.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// The error code of a row that no broker would take.
const TOO_LARGE: &str = "MESSAGE_TOO_LARGE";

/// The classes of one rail.
#[derive(Debug)]
pub(super) struct Classes {
    changed: BTreeMap<String, Class>,
}

impl Classes {
    /// Refuses a code that librdkafka does not have: a change that never applies is a mistake.
    /// `key` is where the codes are configured: `rails.sepa.codes`.
    pub(super) fn new(key: &str, changed: &BTreeMap<String, Class>) -> Result<Self, ConfigError> {
        for name in changed.keys() {
            if !name
                .strip_prefix(codes::PREFIX)
                .is_some_and(|name| codes::names().any(|n| n == name))
            {
                let key = format!("{key}.{name}");
                return Err(ConfigError::Wrong { key, problem: unknown(name) });
            }
        }
        Ok(Self { changed: changed.clone() })
    }

    pub(super) fn class(&self, code: Code) -> Class {
        let usual = codes::look_up(code).map_or(Class::Retryable, |(_, class)| class);
        self.changed.get(&error_code(code)).copied().unwrap_or(usual)
    }

    /// The outcome of a row that librdkafka did not take, or that was never given to it.
    pub(super) fn before_hand_over(&self, code: Code) -> Outcome {
        match code {
            // Not the row's fault and soon over: the row is simply given back.
            Code::QueueFull => Outcome::NotYet { delay: FULL_PAUSE },
            Code::Fatal => Outcome::NotSent,
            Code::MessageSizeTooLarge => Outcome::Refused(too_large(None)),
            _ => Outcome::failed(self.class(code), failure(code), false),
        }
    }

    /// The outcome of a row that librdkafka had, and whether a broker refused a whole batch for
    /// good.
    ///
    /// Everything is in doubt: a record that waits in the queue may be one that was sent, lost its
    /// answer and waits to be sent again, and no code tells which. A broker refuses batches, not
    /// records, so a refusal is the row's own only where it was `alone` in its batch.
    pub(super) fn after_hand_over(&self, code: Code, alone: bool) -> (Outcome, bool) {
        match self.class(code) {
            Class::Terminal if alone => (Outcome::Refused(failure(code)), true),
            Class::Terminal => {
                (Outcome::Unavailable { failure: failure(code), maybe_sent: true }, true)
            }
            class => (Outcome::failed(class, failure(code), true), false),
        }
    }
}

/// `KAFKA_MSG_SIZE_TOO_LARGE`
pub(super) fn error_code(code: Code) -> String {
    match codes::look_up(code) {
        Some((name, _)) => format!("{}{name}", codes::PREFIX),
        None => format!("{}{}", codes::PREFIX, code as i32),
    }
}

/// With librdkafka's own words for the code: they are fixed texts. Its own codes are negative, those of
/// brokers are not.
pub(super) fn failure(code: Code) -> Failure {
    Failure { answered: code as i32 > 0, ..Failure::new(error_code(code), code.to_string()) }
}

/// A row that no broker would take, found before it is sent. `limit` is the topic's.
pub(super) fn too_large(limit: Option<usize>) -> Failure {
    let message = match limit {
        Some(limit) => format!("the record is larger than the topic's max.message.bytes, {limit}"),
        None => "the record is larger than the rail's message.max.bytes".to_owned(),
    };
    Failure::new(TOO_LARGE, message)
}

pub(super) fn is_too_large(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Refused(failure) if failure.error_code == TOO_LARGE)
}

fn unknown(name: &str) -> String {
    let known = |known: &str| format!("{}{known}", codes::PREFIX);
    let best = codes::names()
        .map(known)
        .map(|known| (strsim::damerau_levenshtein(name, &known), known))
        .min()
        .filter(|(typos, _)| *typos <= MAX_TYPOS);
    match best {
        Some((_, best)) => format!("is not a code of a Kafka rail: did you mean {best}?"),
        None => "is not a code of a Kafka rail: they are KAFKA_ and librdkafka's name".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(changed: &[(&str, Class)]) -> Result<Classes, ConfigError> {
        let changed = changed.iter().map(|(name, class)| ((*name).to_owned(), *class)).collect();
        Classes::new("rails.x.codes", &changed)
    }

    #[test]
    fn a_code_that_does_not_exist_is_refused_with_the_one_that_was_meant() {
        let error = classes(&[("KAFKA_MSG_SIZE_TO_LARGE", Class::Terminal)]).unwrap_err();
        let message = error.to_string();
        assert!(message.contains("rails.x.codes.KAFKA_MSG_SIZE_TO_LARGE"), "{message}");
        assert!(message.contains("did you mean KAFKA_MSG_SIZE_TOO_LARGE?"), "{message}");
        let message = classes(&[("HTTP_409", Class::Terminal)]).unwrap_err().to_string();
        assert!(message.contains("is not a code of a Kafka rail: they are"), "{message}");
    }

    #[test]
    fn the_user_changes_a_class() {
        let classes = classes(&[("KAFKA_TOPIC_AUTHORIZATION_FAILED", Class::Retryable)]).unwrap();
        assert_eq!(classes.class(Code::TopicAuthorizationFailed), Class::Retryable);
        assert_eq!(classes.class(Code::ClusterAuthorizationFailed), Class::Unavailable);
    }

    #[test]
    fn a_refused_batch_makes_no_row_fail_but_one_that_was_alone_in_it() {
        let classes = classes(&[]).unwrap();
        let (outcome, refused) = classes.after_hand_over(Code::MessageSizeTooLarge, false);
        assert!(refused && matches!(outcome, Outcome::Unavailable { maybe_sent: true, .. }));
        let (outcome, _) = classes.after_hand_over(Code::MessageSizeTooLarge, true);
        assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    }

    #[test]
    fn what_a_broker_says_is_an_answer_and_what_librdkafka_says_is_none() {
        assert!(failure(Code::MessageSizeTooLarge).answered);
        assert!(!failure(Code::MessageTimedOut).answered);
    }

    #[test]
    fn a_purged_row_is_in_doubt_even_when_it_was_in_the_queue() {
        let classes = classes(&[]).unwrap();
        for code in [Code::PurgeQueue, Code::PurgeInflight, Code::BrokerTransportFailure] {
            let (outcome, refused) = classes.after_hand_over(code, false);
            assert!(!refused && matches!(outcome, Outcome::Unavailable { maybe_sent: true, .. }));
        }
    }

    #[test]
    fn what_librdkafka_did_not_take_was_not_sent() {
        let classes = classes(&[]).unwrap();
        assert_eq!(classes.before_hand_over(Code::Fatal), Outcome::NotSent);
        let full = classes.before_hand_over(Code::QueueFull);
        assert_eq!(full, Outcome::NotYet { delay: FULL_PAUSE }, "it does not come back at once");
        let outcome = classes.before_hand_over(Code::MessageSizeTooLarge);
        assert!(is_too_large(&outcome), "{outcome:?}");
        let outcome = classes.before_hand_over(Code::UnknownTopic);
        assert!(matches!(outcome, Outcome::Unavailable { maybe_sent: false, .. }));
    }
}
