//! Lanes and configurations for the unit tests of this rail.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use figment::Figment;
use figment::providers::{Format, Toml};
use tokio::sync::mpsc;

use crate::config::KafkaRailConfig;
use crate::delivery::{Breaker, Lane, LaneTerms, Lease, Row, Settled, Slots};

/// A rail with the usual settings, and whatever `more` says in TOML.
pub(super) fn config(more: &str) -> KafkaRailConfig {
    let toml = format!("kind = \"kafka\"\nbrokers = \"127.0.0.1:1\"\ntopic = \"t\"\n{more}");
    Figment::from(Toml::string(&toml)).extract().unwrap()
}

/// A lane of one row, and the receiver of what becomes of it.
pub(super) fn lane() -> (Arc<Lane>, mpsc::UnboundedReceiver<Settled>) {
    let (settled, receiver) = mpsc::unbounded_channel();
    let terms = LaneTerms {
        rail: "sepa".into(),
        key: "participant".into(),
        ordered: true,
        halts: false,
        lease: Lease::new(Instant::now(), Duration::from_secs(60)),
        permit: Arc::new(Breaker::new("t".into())).permit().unwrap(),
        taken: Arc::new(Slots::default()).take(1),
        stopping: Arc::new(AtomicBool::new(false)),
        settled,
    };
    (Arc::new(Lane::new(vec![Row::example(1)], terms)), receiver)
}
