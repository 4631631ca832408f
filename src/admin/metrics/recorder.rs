//! The recorder behind the metrics.

use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use super::PROCESS;
use super::labels::STATES;
use super::names::{
    ATTEMPTS_TOTAL, GAUGES, HISTOGRAMS, LABELLED_COUNTERS, PLAIN_COUNTERS, TRESTLE_BUILD_INFO,
};
use crate::admin::AdminError;

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Installs the recorder for the whole process, once. The handle renders what it has recorded.
pub fn install() -> Result<PrometheusHandle, AdminError> {
    let recorder = build()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(BuildError::from)?;
    INSTALLED.store(true, Ordering::Relaxed);
    describe();
    Ok(handle)
}

/// Whether anybody can see what is recorded.
pub fn are_shown() -> bool {
    INSTALLED.load(Ordering::Relaxed)
}

/// `with_recommended_naming` stays off: it would append a unit to names that are fixed.
pub(super) fn build() -> Result<PrometheusRecorder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for (name, _, buckets) in HISTOGRAMS {
        // Without buckets it would be rendered as a summary.
        builder = builder.set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)?;
    }
    Ok(builder.build_recorder())
}

/// Says what each metric means, and starts those that can start at zero.
pub(super) fn describe() {
    for (name, help) in PLAIN_COUNTERS {
        describe_counter!(*name, *help);
        counter!(*name).absolute(0);
    }
    for (name, help) in LABELLED_COUNTERS {
        describe_counter!(*name, *help);
    }
    for state in STATES {
        counter!(ATTEMPTS_TOTAL, "state" => state).absolute(0);
    }
    for (name, help) in GAUGES {
        describe_gauge!(*name, *help);
    }
    gauge!(TRESTLE_BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    PROCESS.describe();
    for (name, help, _) in HISTOGRAMS {
        describe_histogram!(*name, *help);
        // To ask for a histogram is enough for it to be rendered, empty.
        let _ = histogram!(*name);
    }
}
