//! Which trace an attempt belongs to.

use std::fmt;
use std::time::{Duration, SystemTime};

use super::Row;

/// The trace context that the producer stored with a row (W3C), and when this attempt ran.
pub struct Trace {
    pub traceparent: String,
    pub tracestate: Option<String>,
    pub began_at: SystemTime,
    pub ended_at: SystemTime,
}

impl Trace {
    /// Nothing for a row without trace context.
    pub(super) fn of(row: &Row, ended_at: SystemTime, took: Duration) -> Option<Self> {
        Some(Self {
            traceparent: row.header("traceparent")?.to_owned(),
            tracestate: row.header("tracestate").map(str::to_owned),
            began_at: ended_at.checked_sub(took).unwrap_or(ended_at),
            ended_at,
        })
    }
}

/// Without the headers' values: whatever a producer wrote there may not reach a log.
impl fmt::Debug for Trace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Trace").finish_non_exhaustive()
    }
}
