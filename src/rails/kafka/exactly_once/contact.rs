//! When a broker last answered this worker, whoever of it had asked.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Contact(Mutex<Instant>);

impl Default for Contact {
    fn default() -> Self {
        Self(Mutex::new(Instant::now()))
    }
}

impl Contact {
    /// A broker has just answered.
    pub(super) fn answered(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// For how long none has.
    pub(super) fn silent_for(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}
