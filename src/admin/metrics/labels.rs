//! Keeps the values of labels few, whatever a receiver answers.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// The state that repair writes.
pub(super) const ZOMBIE_REQUEUE: &str = "ZOMBIE_REQUEUE";
/// The states of the ledger.
pub(super) const STATES: [&str; 4] = ["DISPATCHED", "RETRYABLE", "FAILED", ZOMBIE_REQUEUE];

/// Refusals of an outcome that mean that another worker was there first.
const CONCURRENCY_CODES: [&str; 3] = ["P7001", "P7002", "P7006"];

/// Stands for every value that is not one of ours.
pub(super) const OTHER: &str = "other";

/// More than all codes of librdkafka and HTTP that a worker is likely to see.
const MAX_CODES: usize = 200;
const MAX_CODE_LENGTH: usize = 64;

pub(super) fn state(state: &str) -> &'static str {
    one_of(&STATES, state)
}

pub(super) fn concurrency_code(code: &str) -> &'static str {
    one_of(&CONCURRENCY_CODES, code)
}

fn one_of(known: &[&'static str], value: &str) -> &'static str {
    known.iter().find(|known| **known == value).unwrap_or(&OTHER)
}

/// The error codes that have been seen. A code can come from outside: past the bound, and where it
/// does not look like a code, it is counted as [`OTHER`].
#[derive(Debug)]
pub(super) struct ErrorCodes(Mutex<BTreeSet<String>>);

impl ErrorCodes {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    pub(super) fn label(&self, code: &str) -> String {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(code) {
            return code.to_owned();
        }
        if seen.len() >= MAX_CODES || !looks_like_a_code(code) {
            return OTHER.to_owned();
        }
        seen.insert(code.to_owned());
        code.to_owned()
    }
}

fn looks_like_a_code(code: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=MAX_CODE_LENGTH).contains(&code.len()) && code.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_state_or_code_has_one_label() {
        assert_eq!(state("FAILED"), "FAILED");
        assert_eq!(state("failed"), OTHER);
        assert_eq!(concurrency_code("P7002"), "P7002");
        assert_eq!(concurrency_code("23505"), OTHER);
    }

    #[test]
    fn error_codes_are_bounded_in_form_and_number() {
        let codes = ErrorCodes::new();
        assert_eq!(codes.label("HTTP_503"), "HTTP_503");
        for code in ["", "insufficient funds", "http_503", &"A".repeat(MAX_CODE_LENGTH + 1)] {
            assert_eq!(codes.label(code), OTHER);
        }
        for number in 1..MAX_CODES {
            assert_ne!(codes.label(&format!("CODE_{number}")), OTHER);
        }
        assert_eq!(codes.label("ONE_TOO_MANY"), OTHER);
        assert_eq!(codes.label("HTTP_503"), "HTTP_503");
    }
}
