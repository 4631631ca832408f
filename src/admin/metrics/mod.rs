//! What is counted and measured. The relay and the rails call these functions; no name of a metric
//! and no label is spelled anywhere else.
//!
//! Labels are few by construction: a rail by its configured name, states and codes out of a bounded
//! set; never a participant, a tenant or a destination.

mod labels;
mod names;
mod recorder;

use std::time::Duration;

use metrics::{counter, gauge, histogram};

pub use recorder::install;

static ERROR_CODES: labels::ErrorCodes = labels::ErrorCodes::new();

/// What the outbox holds: pending rows, the age of the oldest (zero when there is none), FAILED rows
/// that nobody has replayed or dismissed, and leases that are expired and not yet repaired.
pub fn gauges(pending_depth: i64, oldest_age: Duration, dlq_depth: i64, expired_leases: i64) {
    gauge!(names::OUTBOX_PENDING_DEPTH).set(pending_depth as f64);
    gauge!(names::OLDEST_PENDING_AGE_SECONDS).set(oldest_age.as_secs_f64());
    gauge!(names::DLQ_DEPTH).set(dlq_depth as f64);
    gauge!(names::STUCK_DISPATCHING_COUNT).set(expired_leases as f64);
}

/// Whether the depth was counted, or estimated because there is too much to count.
pub fn depth_is_exact(exact: bool) {
    gauge!(names::OUTBOX_PENDING_DEPTH_ESTIMATED).set(if exact { 0.0 } else { 1.0 });
}

/// Lanes of rails that no worker runs.
pub fn unroutable(lanes: i64) {
    gauge!(names::UNROUTABLE_LANES).set(lanes as f64);
}

/// Shards that wait for an operator, of whatever rail.
pub fn halted_shards(shards: i64) {
    gauge!(names::HALTED_SHARDS).set(shards as f64);
}

/// Shards of this rail that are ours.
pub fn owned_shards(rail: &str, shards: usize) {
    gauge!(names::OWNED_SHARDS, "rail" => rail.to_owned()).set(shards as f64);
}

/// A shard was taken up with a new producer, and so many rows were found to be delivered already.
pub fn shard_taken_up(rail: &str, recovered_rows: i32) {
    counter!(names::SHARD_TAKEOVERS_TOTAL, "rail" => rail.to_owned()).increment(1);
    let rows = u64::try_from(recovered_rows).unwrap_or(0);
    counter!(names::SHARD_RECOVERED_ROWS_TOTAL, "rail" => rail.to_owned()).increment(rows);
}

/// A transaction did not succeed for certain.
pub fn shard_recycled(rail: &str) {
    counter!(names::SHARD_RECYCLES_TOTAL, "rail" => rail.to_owned()).increment(1);
}

/// Another owner of the shard has fenced us off.
pub fn shard_fenced(rail: &str) {
    counter!(names::SHARD_FENCED_TOTAL, "rail" => rail.to_owned()).increment(1);
}

/// How many rows are with a rail, and how many of its destinations have a breaker that is not
/// closed. The destinations themselves are no label: a template can make one for each tenant.
pub fn rail(rail: &str, in_flight: usize, open_breakers: usize) {
    gauge!(names::RAIL_IN_FLIGHT_ROWS, "rail" => rail.to_owned()).set(in_flight as f64);
    gauge!(names::RAIL_BREAKER_OPEN, "rail" => rail.to_owned()).set(open_breakers as f64);
}

/// A notification woke the worker.
pub fn notified() {
    counter!(names::NOTIFY_WAKEUPS_TOTAL).increment(1);
}

/// A claim came back. One without rows is not counted: an idle worker would count its own polling.
pub fn claimed(rows: usize) {
    if rows > 0 {
        counter!(names::CLAIM_BATCHES_TOTAL).increment(1);
        counter!(names::CLAIMED_ROWS_TOTAL).increment(rows as u64);
    }
}

/// An attempt was written to the ledger with this state.
pub fn attempt(state: &str) {
    counter!(names::ATTEMPTS_TOTAL, "state" => labels::state(state)).increment(1);
}

/// A row was delivered: how long its rail took to answer, and how old the row was then.
pub fn dispatched(latency: Duration, age: Duration) {
    histogram!(names::DISPATCH_LATENCY_MS).record(latency.as_secs_f64() * 1_000.0);
    histogram!(names::DELIVERY_LATENCY_SECONDS).record(age.as_secs_f64());
}

/// So many outcomes were written in one transaction.
pub fn completed_batch(rows: usize) {
    histogram!(names::COMPLETION_BATCH_ROWS).record(rows as f64);
}

/// Repair took rows back from expired leases: each of them has a ZOMBIE_REQUEUE in the ledger.
pub fn repaired(rows: usize) {
    counter!(names::REAPER_REQUEUES_TOTAL).increment(rows as u64);
    counter!(names::ATTEMPTS_TOTAL, "state" => labels::ZOMBIE_REQUEUE).increment(rows as u64);
}

/// The lease of a lane was lost while it was under way.
pub fn lease_lost() {
    counter!(names::LEASE_LOST_TOTAL).increment(1);
}

/// An outcome was refused with this SQLSTATE, because another worker was there first.
pub fn concurrency_event(sqlstate: &str) {
    let code = labels::concurrency_code(sqlstate);
    counter!(names::CONCURRENCY_EVENTS_TOTAL, "code" => code).increment(1);
}

/// The ledger's unique index refused an outcome.
pub fn integrity_violation() {
    counter!(names::INTEGRITY_VIOLATIONS_TOTAL).increment(1);
}

/// A row failed on a rail with this error code, whatever its class.
pub fn rail_error(rail: &str, error_code: &str) {
    let labels = [("rail", rail.to_owned()), ("code", ERROR_CODES.label(error_code))];
    counter!(names::RAIL_ERRORS_TOTAL, &labels).increment(1);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// What a scrape shows after `record`.
    fn rendered(record: impl FnOnce()) -> String {
        let recorder = recorder::build().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            recorder::describe();
            record();
        });
        handle.render()
    }

    fn record_everything() {
        gauges(7, Duration::from_millis(2_500), 3, 2);
        depth_is_exact(false);
        unroutable(4);
        rail("kafka", 12, 1);
        halted_shards(1);
        owned_shards("kafka", 16);
        shard_taken_up("kafka", 3);
        shard_recycled("kafka");
        shard_fenced("kafka");
        notified();
        claimed(40);
        claimed(0);
        attempt("DISPATCHED");
        attempt("made up");
        dispatched(Duration::from_millis(4), Duration::from_millis(300));
        completed_batch(100);
        repaired(5);
        lease_lost();
        concurrency_event("P7002");
        integrity_violation();
        rail_error("ach", "HTTP_503");
        rail_error("ach", "no such account: hunter2");
    }

    #[test]
    fn names_labels_and_values_are_rendered_exactly() {
        let text = rendered(record_everything);
        for line in [
            "outbox_pending_depth 7",
            "outbox_pending_depth_estimated 1",
            "oldest_pending_age_seconds 2.5",
            "dlq_depth 3",
            "stuck_dispatching_count 2",
            "unroutable_lanes 4",
            "halted_shards 1",
            r#"owned_shards{rail="kafka"} 16"#,
            r#"shard_takeovers_total{rail="kafka"} 1"#,
            r#"shard_recovered_rows_total{rail="kafka"} 3"#,
            r#"shard_recycles_total{rail="kafka"} 1"#,
            r#"shard_fenced_total{rail="kafka"} 1"#,
            r#"rail_breaker_open{rail="kafka"} 1"#,
            r#"rail_in_flight_rows{rail="kafka"} 12"#,
            "notify_wakeups_total 1",
            "claim_batches_total 1",
            "claimed_rows_total 40",
            r#"attempts_total{state="DISPATCHED"} 1"#,
            r#"attempts_total{state="FAILED"} 0"#,
            r#"attempts_total{state="other"} 1"#,
            r#"attempts_total{state="ZOMBIE_REQUEUE"} 5"#,
            "reaper_requeues_total 5",
            "lease_lost_total 1",
            r#"concurrency_events_total{code="P7002"} 1"#,
            "integrity_violations_total 1",
            r#"rail_errors_total{rail="ach",code="HTTP_503"} 1"#,
            r#"rail_errors_total{rail="ach",code="other"} 1"#,
            r#"dispatch_latency_ms_bucket{le="2"} 0"#,
            r#"dispatch_latency_ms_bucket{le="5"} 1"#,
            "dispatch_latency_ms_sum 4",
            "dispatch_latency_ms_count 1",
            r#"delivery_latency_seconds_bucket{le="0.5"} 1"#,
            r#"completion_batch_rows_bucket{le="100"} 1"#,
        ] {
            assert!(text.lines().any(|rendered| rendered == line), "no {line} in\n{text}");
        }
        assert!(!text.contains("hunter2"));
    }

    #[test]
    fn each_metric_has_its_type_and_there_is_no_other() {
        let text = rendered(record_everything);
        let types: BTreeSet<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        let expected: BTreeSet<&str> = [
            "outbox_pending_depth gauge",
            "outbox_pending_depth_estimated gauge",
            "oldest_pending_age_seconds gauge",
            "dlq_depth gauge",
            "stuck_dispatching_count gauge",
            "unroutable_lanes gauge",
            "halted_shards gauge",
            "owned_shards gauge",
            "shard_takeovers_total counter",
            "shard_recovered_rows_total counter",
            "shard_recycles_total counter",
            "shard_fenced_total counter",
            "rail_breaker_open gauge",
            "rail_in_flight_rows gauge",
            "notify_wakeups_total counter",
            "claim_batches_total counter",
            "claimed_rows_total counter",
            "reaper_requeues_total counter",
            "lease_lost_total counter",
            "integrity_violations_total counter",
            "attempts_total counter",
            "concurrency_events_total counter",
            "rail_errors_total counter",
            "dispatch_latency_ms histogram",
            "delivery_latency_seconds histogram",
            "completion_batch_rows histogram",
        ]
        .into();
        assert_eq!(types, expected);
        let described = text.lines().filter(|line| line.starts_with("# HELP ")).count();
        assert_eq!(described, expected.len());
    }

    #[test]
    fn counters_and_histograms_are_there_before_anything_happens() {
        let text = rendered(|| ());
        for line in [
            "notify_wakeups_total 0",
            "claim_batches_total 0",
            "reaper_requeues_total 0",
            r#"attempts_total{state="ZOMBIE_REQUEUE"} 0"#,
            "dispatch_latency_ms_count 0",
        ] {
            assert!(text.lines().any(|rendered| rendered == line), "no {line} in\n{text}");
        }
        assert!(!text.contains("outbox_pending_depth 0"), "nobody has looked yet");
    }
}
