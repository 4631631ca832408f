//! What is counted and measured. The relay and the rails call these functions; no name of a metric
//! and no label is spelled anywhere else.
//!
//! Labels are few by construction: a rail by its configured name, states and codes out of a bounded
//! set; never a participant, a tenant or a destination.

mod labels;
mod names;
#[cfg(test)]
mod promql;
mod recorder;
#[cfg(test)]
mod shipped;

use std::sync::LazyLock;
use std::time::Duration;

use metrics::{counter, gauge, histogram};
use metrics_process::Collector;

use crate::store::Gauges;

pub use recorder::{are_shown, install};

static PROCESS: LazyLock<Collector> = LazyLock::new(Collector::default);
static ERROR_CODES: labels::ErrorCodes = labels::ErrorCodes::new();

/// What the outbox holds, as one worker has sampled it for all: each shows the same.
pub fn sampled(sample: &Gauges) {
    gauge!(names::OUTBOX_PENDING_DEPTH).set(sample.pending_depth as f64);
    gauge!(names::OUTBOX_PENDING_DEPTH_ESTIMATED).set(switch(!sample.depth_is_exact));
    gauge!(names::OLDEST_PENDING_AGE_SECONDS).set(sample.oldest_pending_age_seconds.unwrap_or(0.0));
    gauge!(names::DLQ_DEPTH).set(sample.dlq_depth as f64);
    gauge!(names::DLQ_UNDELIVERED_AGE_SECONDS)
        .set(sample.dlq_undelivered_age_seconds.unwrap_or(0.0));
    gauge!(names::STUCK_DISPATCHING_COUNT).set(sample.expired_leases as f64);
    for (state, lanes) in [
        ("due", sample.due_lanes),
        ("delayed", sample.delayed_lanes),
        ("leased", sample.leased_lanes),
        ("blocked", sample.blocked_lanes),
        ("paused", sample.paused_lanes),
        ("halted", sample.halted_lanes),
    ] {
        gauge!(names::OUTBOX_LANES, "state" => state).set(lanes as f64);
    }
    gauge!(names::UNROUTABLE_LANES).set(sample.unroutable_lanes as f64);
    gauge!(names::OUTBOX_WORKERS).set(sample.workers as f64);
    gauge!(names::HALTED_SHARDS).set(sample.halted_shards as f64);
    gauge!(names::LEDGER_DEFAULT_PARTITION_ROWS).set(sample.default_partition_rows as f64);
    gauge!(names::OUTBOX_DEAD_TUPLES).set(sample.dead_tuples as f64);
    gauge!(names::OLDEST_SNAPSHOT_AGE_SECONDS).set(sample.oldest_snapshot_age_seconds);
}

/// What is only known at the moment of a scrape: whether there is no progress, and what the process uses.
pub fn scraped(stalled: bool) {
    gauge!(names::RELAY_STALLED).set(switch(stalled));
    PROCESS.collect();
}

fn switch(on: bool) -> f64 {
    if on { 1.0 } else { 0.0 }
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
    pub(super) fn rendered(record: impl FnOnce()) -> String {
        let recorder = recorder::build().unwrap();
        let handle = recorder.handle();
        metrics::with_local_recorder(&recorder, || {
            recorder::describe();
            record();
        });
        handle.render()
    }

    pub(super) fn record_everything() {
        sampled(&Gauges {
            pending_depth: 7,
            depth_is_exact: false,
            oldest_pending_age_seconds: Some(2.5),
            dlq_depth: 3,
            expired_leases: 2,
            due_lanes: 11,
            blocked_lanes: 12,
            unroutable_lanes: 4,
            workers: 5,
            default_partition_rows: 6,
            dead_tuples: 8,
            oldest_snapshot_age_seconds: 9.5,
            halted_shards: 1,
            ..Gauges::default()
        });
        scraped(true);
        rail("kafka", 12, 1);
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
            "dlq_undelivered_age_seconds 0",
            "stuck_dispatching_count 2",
            r#"outbox_lanes{state="due"} 11"#,
            r#"outbox_lanes{state="blocked"} 12"#,
            r#"outbox_lanes{state="halted"} 0"#,
            "unroutable_lanes 4",
            "outbox_workers 5",
            "ledger_default_partition_rows 6",
            "outbox_dead_tuples 8",
            "oldest_snapshot_age_seconds 9.5",
            "relay_stalled 1",
            concat!("trestle_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
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

    /// Each metric of a scrape with its type and the names of its labels, as the page has them.
    fn shown(text: &str) -> BTreeSet<String> {
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
        types.map(|(name, kind)| format!("{name} {kind} {}", labels_of(text, name))).collect()
    }

    fn labels_of(text: &str, name: &str) -> String {
        let series = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{'));
        let pairs =
            series.filter_map(|line| line.split_once('}')).flat_map(|(all, _)| all.split(','));
        let labels: BTreeSet<&str> =
            pairs.filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
        labels.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// The rows of the page's tables of metrics, which alone have four cells: name, type, labels.
    fn documented() -> BTreeSet<String> {
        const PAGE: &str = include_str!("../../../docs/metrics.md");
        let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|row| row.split(" |").map(|cell| cell.trim_matches(['|', ' '])));
        let cells = cells.map(|cells| cells.collect::<Vec<_>>().join("\n").replace('`', ""));
        let cells = cells.filter_map(|row| match row.split('\n').collect::<Vec<_>>()[..] {
            [name, kind, labels, _meaning, ""] => Some(format!("{name} {kind} {labels}")),
            _ => None,
        });
        cells.collect()
    }

    #[test]
    fn each_metric_is_on_the_page_with_its_type_and_labels_and_there_is_no_other() {
        let text = rendered(record_everything);
        let (shown, documented) = (shown(&text), documented());
        let missing: Vec<_> = shown.difference(&documented).collect();
        let surplus: Vec<_> = documented.difference(&shown).collect();
        assert!(missing.is_empty(), "not in docs/metrics.md: {missing:#?}");
        assert!(surplus.is_empty(), "in docs/metrics.md alone: {surplus:#?}");
    }

    #[test]
    fn each_metric_has_a_help_text() {
        let text = rendered(record_everything);
        for (name, _) in
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        {
            assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        }
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
