//! The rows that a producer has and that nobody has reported yet.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::courier::give_back;
use crate::delivery::{Lane, Outcome};

/// Rows in the order in which they were handed over. Bounded by the rail's capacity.
#[derive(Default)]
pub(super) struct UnderWay(Mutex<VecDeque<HandOver>>);

struct HandOver {
    at: Instant,
    /// Its records in librdkafka keep it. Kept here too, it would be there until the next look, and whoever shuts down
    /// would wait for that.
    lane: Weak<Lane>,
    rows: Range<usize>,
}

impl HandOver {
    fn unreported(&self) -> Vec<usize> {
        let mut indexes = self.lane.upgrade().map(|lane| lane.unreported()).unwrap_or_default();
        indexes.retain(|index| self.rows.contains(index));
        indexes
    }
}

impl UnderWay {
    /// Rows that were handed over, the first of them at `at`.
    pub(super) fn add(&self, lane: &Arc<Lane>, rows: Range<usize>, at: Instant) {
        let mut hand_overs = self.lock();
        if hand_overs.len() == hand_overs.capacity() {
            // One that is stuck at the front must not keep all that came after it.
            hand_overs.retain(|hand_over| !hand_over.unreported().is_empty());
        }
        hand_overs.push_back(HandOver { at, lane: Arc::downgrade(lane), rows });
    }

    /// When the oldest row was handed over that is still unreported.
    pub(super) fn oldest(&self) -> Option<Instant> {
        let mut hand_overs = self.lock();
        while hand_overs.front().is_some_and(|first| first.unreported().is_empty()) {
            hand_overs.pop_front();
        }
        hand_overs.front().map(|first| first.at)
    }

    /// Reports what is left. Returns how many rows that were.
    pub(super) fn report_the_rest(&self, outcome: &Outcome) -> usize {
        // Reporting may wake whoever hands over the next lane: not under our lock.
        let hand_overs = std::mem::take(&mut *self.lock());
        let mut count = 0;
        for hand_over in hand_overs {
            let Some(lane) = hand_over.lane.upgrade() else { continue };
            let left = hand_over.unreported();
            for index in &left {
                lane.report(*index, outcome.clone());
            }
            if !left.is_empty() {
                // What waited for these was never handed over.
                give_back(&lane, hand_over.rows.end);
            }
            count += left.len();
        }
        count
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<HandOver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::error::TryRecvError;

    use super::super::testing::lane;
    use super::*;

    /// Whoever writes outcomes ends when the last lane is gone.
    #[test]
    fn a_lane_that_is_reported_is_not_kept_until_the_next_look() {
        let (lane, mut settled) = lane();
        let under_way = UnderWay::default();
        under_way.add(&lane, 0..1, Instant::now());
        assert!(under_way.oldest().is_some(), "its row is under way");
        lane.report(0, Outcome::Delivered { reference: None, rail_code: None });
        drop(lane);
        assert!(settled.try_recv().is_ok(), "its outcome");
        assert_eq!(settled.try_recv().err(), Some(TryRecvError::Disconnected));
        assert!(under_way.oldest().is_none());
    }
}
