//! What became of an attempt to deliver a row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a failure means for the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The rail refused this message and will refuse it again.
    Terminal,
    /// It may work later, or nobody knows whether it worked.
    Retryable,
    /// The destination as a whole is down or throttling.
    Unavailable,
}

/// Why a row was not delivered, in words that may be logged and stored: never payload or secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// For programs: `PAYLOAD_INVALID`, `HTTP_503`, `KAFKA_MSG_SIZE_TOO_LARGE`.
    pub error_code: String,
    /// For people.
    pub message: String,
    /// The rail's own code, where it gave one.
    pub rail_code: Option<String>,
    /// How long the rail asks us to wait.
    pub retry_after: Option<Duration>,
    /// Whether the destination said so itself: then it is there.
    pub answered: bool,
}

impl Failure {
    pub fn new(error_code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            error_code: error_code.into(),
            message: message.into(),
            rail_code: None,
            retry_after: None,
            answered: false,
        }
    }
}

/// What a rail reports for a row, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The rail has it.
    Delivered { reference: Option<String>, rail_code: Option<String> },
    /// The rail refused it for good.
    Refused(Failure),
    /// It may have been delivered, or may work later: it is tried again, and counted.
    Retry(Failure),
    /// The destination is unavailable. A row that may have been sent is tried again without being
    /// counted; one that certainly was not is given back as if it had never been tried.
    Unavailable { failure: Failure, maybe_sent: bool },
    /// Certainly not sent, for a reason that is not the row's: the lane stopped before it, the lease
    /// does not cover the send, the worker shuts down.
    NotSent,
    /// The same, and there is no point in trying again before this has passed.
    NotYet { delay: Duration },
    /// Only of a row in a batch: nobody can say yet. Nothing is written down; it stays in its batch until
    /// the owner of the shard has found out. A failure says that the destination is unavailable.
    Undecided(Option<Failure>),
}

impl Outcome {
    /// The outcome of a failure after the row may have reached the rail.
    pub fn failed(class: Class, failure: Failure, maybe_sent: bool) -> Self {
        match class {
            Class::Terminal => Self::Refused(failure),
            Class::Retryable => Self::Retry(failure),
            Class::Unavailable => Self::Unavailable { failure, maybe_sent },
        }
    }

    /// Whether the lane goes on behind a row with this outcome.
    pub fn lets_the_lane_go_on(&self, halts_on_failed: bool) -> bool {
        match self {
            Self::Delivered { .. } => true,
            Self::Refused(_) => !halts_on_failed,
            Self::Retry(_)
            | Self::Unavailable { .. }
            | Self::NotSent
            | Self::NotYet { .. }
            | Self::Undecided(_) => false,
        }
    }
}
