//! What the thread of a shard and the rail share.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Default)]
pub(super) struct Status {
    /// Can take a batch.
    pub(super) ready: AtomicBool,
    /// Is to end: the shard is given up, or lost.
    pub(super) over: AtomicBool,
    /// Has ended: the shard is nobody's here.
    pub(super) ended: AtomicBool,
    /// How often it has been taken up.
    pub(super) take_ups: AtomicUsize,
    /// Since when no broker lets its producer in.
    seeking_since: Mutex<Option<Instant>>,
}

impl Status {
    /// For how long it has looked for a broker, in vain.
    pub(super) fn sought_for(&self) -> Duration {
        self.seeking().map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// No broker has let its producer in since then, or since earlier.
    pub(super) fn seeks_since(&self, began: Instant) {
        self.seeking().get_or_insert(began);
    }

    pub(super) fn found(&self) {
        *self.seeking() = None;
    }

    fn seeking(&self) -> MutexGuard<'_, Option<Instant>> {
        self.seeking_since.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
