//! The name of every metric, its kind and what it means. Names are rendered exactly as written.

pub(super) const OUTBOX_PENDING_DEPTH: &str = "outbox_pending_depth";
pub(super) const OUTBOX_PENDING_DEPTH_ESTIMATED: &str = "outbox_pending_depth_estimated";
pub(super) const OLDEST_PENDING_AGE_SECONDS: &str = "oldest_pending_age_seconds";
pub(super) const DLQ_DEPTH: &str = "dlq_depth";
pub(super) const STUCK_DISPATCHING_COUNT: &str = "stuck_dispatching_count";
pub(super) const DLQ_UNDELIVERED_AGE_SECONDS: &str = "dlq_undelivered_age_seconds";
pub(super) const OUTBOX_LANES: &str = "outbox_lanes";
pub(super) const UNROUTABLE_LANES: &str = "unroutable_lanes";
pub(super) const OUTBOX_WORKERS: &str = "outbox_workers";
pub(super) const LEDGER_DEFAULT_PARTITION_ROWS: &str = "ledger_default_partition_rows";
pub(super) const OUTBOX_DEAD_TUPLES: &str = "outbox_dead_tuples";
pub(super) const OLDEST_SNAPSHOT_AGE_SECONDS: &str = "oldest_snapshot_age_seconds";
pub(super) const RAIL_BREAKER_OPEN: &str = "rail_breaker_open";
pub(super) const HALTED_SHARDS: &str = "halted_shards";
pub(super) const OWNED_SHARDS: &str = "owned_shards";
pub(super) const RAIL_IN_FLIGHT_ROWS: &str = "rail_in_flight_rows";
pub(super) const RELAY_STALLED: &str = "relay_stalled";
pub(super) const TRESTLE_BUILD_INFO: &str = "trestle_build_info";

pub(super) const NOTIFY_WAKEUPS_TOTAL: &str = "notify_wakeups_total";
pub(super) const CLAIM_BATCHES_TOTAL: &str = "claim_batches_total";
pub(super) const CLAIMED_ROWS_TOTAL: &str = "claimed_rows_total";
pub(super) const REAPER_REQUEUES_TOTAL: &str = "reaper_requeues_total";
pub(super) const LEASE_LOST_TOTAL: &str = "lease_lost_total";
pub(super) const INTEGRITY_VIOLATIONS_TOTAL: &str = "integrity_violations_total";
pub(super) const ATTEMPTS_TOTAL: &str = "attempts_total";
pub(super) const CONCURRENCY_EVENTS_TOTAL: &str = "concurrency_events_total";
pub(super) const RAIL_ERRORS_TOTAL: &str = "rail_errors_total";
pub(super) const SHARD_TAKEOVERS_TOTAL: &str = "shard_takeovers_total";
pub(super) const SHARD_RECOVERED_ROWS_TOTAL: &str = "shard_recovered_rows_total";
pub(super) const SHARD_RECYCLES_TOTAL: &str = "shard_recycles_total";
pub(super) const SHARD_FENCED_TOTAL: &str = "shard_fenced_total";

pub(super) const DISPATCH_LATENCY_MS: &str = "dispatch_latency_ms";
pub(super) const DELIVERY_LATENCY_SECONDS: &str = "delivery_latency_seconds";
pub(super) const COMPLETION_BATCH_ROWS: &str = "completion_batch_rows";

/// What is sampled. A gauge appears with its first sample: until then nobody knows.
pub(super) const GAUGES: &[(&str, &str)] = &[
    (OUTBOX_PENDING_DEPTH, "Rows that are neither delivered nor failed"),
    (
        OUTBOX_PENDING_DEPTH_ESTIMATED,
        "1 while outbox_pending_depth is an estimate, because there are too many to count",
    ),
    (OLDEST_PENDING_AGE_SECONDS, "Age of the oldest row that is neither delivered nor failed"),
    (DLQ_DEPTH, "FAILED rows that are neither replayed nor dismissed"),
    (STUCK_DISPATCHING_COUNT, "Leases that are expired and not yet repaired"),
    (DLQ_UNDELIVERED_AGE_SECONDS, "Age of the oldest dead letter that waits to be delivered"),
    (OUTBOX_LANES, "Lanes by what they wait for, each counted up to 1000"),
    (UNROUTABLE_LANES, "Lanes that are due on a rail that no live worker runs, up to 1000"),
    (OUTBOX_WORKERS, "Workers that have said lately that they are there"),
    (
        LEDGER_DEFAULT_PARTITION_ROWS,
        "Rows whose dated partition was missing, up to 2000: none is normal",
    ),
    (OUTBOX_DEAD_TUPLES, "Dead tuples in the tables that change most, as autovacuum sees them"),
    (
        OLDEST_SNAPSHOT_AGE_SECONDS,
        "For how long somebody has kept dead rows from being cleaned, a day at most",
    ),
    (HALTED_SHARDS, "Shards that wait for an operator"),
    (OWNED_SHARDS, "Shards of an exactly-once rail that this worker owns"),
    (RAIL_BREAKER_OPEN, "Destinations of the rail whose breaker is not closed"),
    (RAIL_IN_FLIGHT_ROWS, "Rows that are with the rail"),
    (RELAY_STALLED, "1 while there is work, or no connection, and no progress"),
    (TRESTLE_BUILD_INFO, "1, with the version of this build"),
];

/// Counters without a label: they start at zero, so that a rate is right from the first event.
pub(super) const PLAIN_COUNTERS: &[(&str, &str)] = &[
    (NOTIFY_WAKEUPS_TOTAL, "Notifications that woke the worker"),
    (CLAIM_BATCHES_TOTAL, "Claims that came back with rows"),
    (CLAIMED_ROWS_TOTAL, "Rows that were claimed"),
    (REAPER_REQUEUES_TOTAL, "Rows that were taken back from an expired lease"),
    (LEASE_LOST_TOTAL, "Lanes whose lease was lost while they were under way"),
    (
        INTEGRITY_VIOLATIONS_TOTAL,
        "Outcomes that the ledger's unique index refused (23505): none is normal",
    ),
];

pub(super) const LABELLED_COUNTERS: &[(&str, &str)] = &[
    (ATTEMPTS_TOTAL, "Attempts written to the ledger, by state"),
    (
        CONCURRENCY_EVENTS_TOTAL,
        "Outcomes that were refused because another worker was there first, by SQLSTATE",
    ),
    (RAIL_ERRORS_TOTAL, "Failures by rail and error code"),
    (SHARD_TAKEOVERS_TOTAL, "Shards that were taken up with a new producer"),
    (
        SHARD_RECOVERED_ROWS_TOTAL,
        "Rows of a batch in doubt that were found in the topics and not sent again",
    ),
    (SHARD_RECYCLES_TOTAL, "Transactions in doubt, each of which cost its producer"),
    (SHARD_FENCED_TOTAL, "Producers that another owner of the shard had fenced off"),
];

/// Histograms with the upper bounds of their buckets.
pub(super) const HISTOGRAMS: &[(&str, &str, &[f64])] = &[
    (
        DISPATCH_LATENCY_MS,
        "From handing a row to its rail to the rail's answer",
        &[1., 2., 5., 10., 25., 50., 100., 250., 500., 1_000., 2_500., 5_000., 10_000., 30_000.],
    ),
    (
        DELIVERY_LATENCY_SECONDS,
        "From enqueueing a row to the rail's acknowledgement",
        &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1., 2.5, 5., 10., 30., 60., 300., 1_800.],
    ),
    (
        COMPLETION_BATCH_ROWS,
        "Outcomes written in one transaction",
        &[1., 2., 5., 10., 25., 50., 100., 250., 500., 1_000., 2_500., 5_000., 10_000.],
    ),
];
