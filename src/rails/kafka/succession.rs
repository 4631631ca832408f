//! When one producer ends or no longer fits, another takes its place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::types::RDKafkaErrorCode as Code;
use tracing::{error, info, warn};

use super::carrier::{Carrier, End};
use super::courier::{Courier, report_from};
use super::state::{Found, Known, Slot, State};
use crate::delivery::Lane;

/// How long records go alone after a broker refused a batch. The row that was the reason is found
/// by then, and fails.
const ALONE_FOR: Duration = Duration::from_secs(60);
/// How long a producer goes on that no longer fits, when no other could be made.
const REPRIEVE: Duration = Duration::from_secs(10);

impl Courier {
    /// Called by a producer's own thread: it ends, and another takes its place when every row of
    /// it is reported.
    pub(super) fn retire(self: &Arc<Self>, carrier: &Arc<Carrier>, end: End) {
        let was_current = self.vacate(carrier, end);
        if end != End::Drained {
            if carrier.under_way.oldest().is_some() {
                warn!(rail = &*self.settings.log.rail, ?end, "a producer ends with rows under way");
            }
            carrier.empty(end, self.settings.grace());
        }
        let mut state = self.lock();
        if was_current {
            state.carrier = Slot::Empty;
        }
        // Whoever found this one broken waits, even if another has taken its place since.
        self.take_waiting(&mut state);
        drop(state);
        self.open.send_modify(|open| *open -= 1);
    }

    fn vacate(&self, carrier: &Arc<Carrier>, end: End) -> bool {
        let mut state = self.lock();
        let was_current = state.is_current(carrier);
        if was_current {
            state.carrier = Slot::Emptying;
        }
        if end == End::Overdue {
            // Before anything is sent again, it is asked whether anybody is there.
            state.topics.retain(|_, known| matches!(known, Known::Asked));
        }
        was_current
    }

    /// Puts another producer in the place of this one if its batches must look different by now.
    /// This one sends what it has.
    pub(super) fn reshape(self: &Arc<Self>, carrier: &Arc<Carrier>) {
        self.reshape_locked(&mut self.lock(), carrier);
    }

    fn reshape_locked(self: &Arc<Self>, state: &mut State, carrier: &Arc<Carrier>) {
        let shape = state.shape();
        let fits = carrier.shape == shape && !carrier.is_old();
        let fits = fits || state.reprieve_until.is_some_and(|until| until > Instant::now());
        if !state.is_current(carrier) || fits || self.is_closing() {
            return;
        }
        match self.open_carrier(shape) {
            Ok(next) => {
                info!(rail = &*self.settings.log.rail, ?shape, "a new producer takes over");
                carrier.drain();
                state.carrier = Slot::Open(next);
            }
            Err(error) => {
                state.reprieve_until = Some(Instant::now() + REPRIEVE);
                error!(rail = &*self.settings.log.rail, "no new producer: {}", self.shown(&error));
            }
        }
    }

    /// A record for this topic failed: it is asked about before the next is sent. If a broker
    /// refused a batch for good, records go alone for a while.
    pub(super) fn distrust(&self, topic: &str, refused: bool) {
        let mut state = self.lock();
        if matches!(state.topics.get(topic), Some(Known::Ready(_))) {
            state.topics.remove(topic);
        }
        if refused {
            state.alone_until = Some(Instant::now() + ALONE_FOR);
        }
    }

    /// What was found out about a topic, or why it cannot be used.
    pub(super) fn answer(self: &Arc<Self>, topic: &Arc<str>, answer: Result<Found, Code>) {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        match answer {
            Ok(found) => self.learn(&mut state, topic, found),
            Err(_) => drop(state.topics.remove(topic)),
        }
        for (lane, from) in waiting {
            match answer {
                Err(code) if self.goes_to(&lane, from, topic) => {
                    report_from(&lane, from, &self.unavailable(code));
                }
                _ => self.take_locked(&mut state, lane, from, None),
            }
        }
    }

    fn learn(self: &Arc<Self>, state: &mut State, topic: &Arc<str>, found: Found) {
        state.topics.insert(Arc::clone(topic), Known::Ready(found));
        state.batch_bytes = state.batch_bytes.min(found.limit.unwrap_or(usize::MAX));
        if let Slot::Open(carrier) = &state.carrier {
            let carrier = Arc::clone(carrier);
            self.reshape_locked(state, &carrier);
        }
    }

    fn goes_to(&self, lane: &Lane, from: usize, topic: &Arc<str>) -> bool {
        let row = lane.rows().get(from);
        row.is_some_and(|row| self.settings.topics.of(row).is_ok_and(|of_row| of_row == *topic))
    }
}
