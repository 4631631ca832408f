//! What an outcome is called in the ledger.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::admin::metrics;
use crate::admin::spans::{Attempt, Spans};
use crate::delivery::{Batch, Failure, Outcome, Taken, Trace};
use crate::store::{OutcomeRow, Recorded, whole_seconds};

/// An outcome that is to be written, and what is told once it is.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) row: OutcomeRow,
    pub(super) rail: Arc<str>,
    pub(super) participant_id: Arc<str>,
    pub(super) latency: Duration,
    pub(super) age: Duration,
    pub(super) batch: Option<Batch>,
    pub(super) trace: Option<Trace>,
    /// Given back when this is written: until then the row is under way.
    pub(super) _slot: Taken,
}

impl Entry {
    pub(super) fn is_of_lane(&self, other: &Self) -> bool {
        self.participant_id == other.participant_id && self.rail == other.rail
    }
}

/// Every outcome but a release has its row.
pub(super) fn row(
    outbox_id: Uuid,
    lease_token: Uuid,
    latency: Duration,
    outcome: Outcome,
) -> OutcomeRow {
    let mut row = OutcomeRow {
        outbox_id,
        lease_token,
        state: "RETRYABLE",
        rail_reference: None,
        rail_code: None,
        error_code: None,
        error_message: None,
        latency_ms: i32::try_from(latency.as_millis()).unwrap_or(i32::MAX),
        retry_delay_seconds: None,
        counted: true,
    };
    match outcome {
        Outcome::Delivered { reference, rail_code } => {
            row.state = "DISPATCHED";
            row.rail_reference = reference.map(printable);
            row.rail_code = rail_code.map(printable);
        }
        Outcome::Refused(failure) => {
            row.state = "FAILED";
            explain(&mut row, failure);
        }
        Outcome::Retry(failure) => explain(&mut row, failure),
        Outcome::Unavailable { failure, .. } => {
            row.counted = false;
            explain(&mut row, failure);
        }
        // A lane gives these back; should one come here, it is in doubt.
        Outcome::NotSent | Outcome::NotYet { .. } | Outcome::Undecided(_) => row.counted = false,
    }
    row
}

/// When a row that has to be tried again is due: as asked, or 1 s doubling to a quarter of an hour, as
/// the database has it. Only to be awake then.
pub(super) fn retry_delay(entry: &Entry, attempt_no: Option<i32>) -> Duration {
    let asked = entry.row.retry_delay_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let doublings = attempt_no.unwrap_or(1).clamp(1, 11) - 1;
    Duration::from_secs(asked.unwrap_or((1 << doublings).min(900)))
}

/// An error is logged once: here, where it has become final.
pub(super) fn log_failure(entry: &Entry) {
    tracing::error!(outbox_id = %entry.row.outbox_id, participant_id = %entry.participant_id, rail = %entry.rail,
        error_code = entry.row.error_code, reason = entry.row.error_message,
        "FAILED: the row will not be sent again unless an operator replays it");
}

/// The attempt as the ledger has it, in the trace of the row's producer.
pub(super) fn trace(spans: &Spans, entry: &Entry, state: &str, recorded: &Recorded) {
    if let Some(trace) = &entry.trace {
        spans.attempt(&Attempt {
            trace,
            outbox_id: entry.row.outbox_id,
            rail: &entry.rail,
            attempt_no: recorded.attempt_no,
            state,
            error_code: entry.row.error_code.as_deref(),
            receipt: entry.row.rail_reference.as_deref(),
        });
    }
}

fn explain(row: &mut OutcomeRow, failure: Failure) {
    row.retry_delay_seconds = failure.retry_after.map(whole_seconds);
    row.error_code = Some(printable(failure.error_code));
    row.error_message = Some(printable(failure.message));
    row.rail_code = failure.rail_code.map(printable);
}

/// PostgreSQL's text has no NUL, and a rail's words may.
fn printable(text: String) -> String {
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

/// Latencies are those of what was delivered; a wait for a time-out would hide them.
pub(super) fn measure(entry: &Entry, state: &str) {
    if state == "DISPATCHED" {
        metrics::dispatched(entry.latency, entry.age);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(outcome: Outcome) -> OutcomeRow {
        row(Uuid::nil(), Uuid::nil(), Duration::ZERO, outcome)
    }

    #[test]
    fn each_outcome_has_its_state_and_counts_or_not() {
        let failure = || Failure::new("CODE", "words");
        let delivered = Outcome::Delivered { reference: Some("t/0@1".into()), rail_code: None };
        let cases = [
            (delivered, "DISPATCHED", true),
            (Outcome::Refused(failure()), "FAILED", true),
            (Outcome::Retry(failure()), "RETRYABLE", true),
            (Outcome::Unavailable { failure: failure(), maybe_sent: true }, "RETRYABLE", false),
        ];
        for (outcome, state, counted) in cases {
            let row = written(outcome);
            assert_eq!((row.state, row.counted), (state, counted));
        }
    }

    #[test]
    fn a_wait_that_the_rail_asked_for_is_rounded_up_to_seconds() {
        let mut failure = Failure::new("HTTP_429", "slow down");
        failure.retry_after = Some(Duration::from_millis(1_200));
        assert_eq!(written(Outcome::Retry(failure)).retry_delay_seconds, Some(2));
    }

    #[test]
    fn words_with_a_nul_can_be_stored() {
        let row = written(Outcome::Refused(Failure::new("X", "a\0b")));
        assert_eq!(row.error_message.as_deref(), Some("a\u{fffd}b"));
    }
}
