//! How many requests may be under way, and how fast they may start.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Lets requests through: first come, first served.
pub(super) struct Gate {
    slots: Semaphore,
    pace: Option<Pace>,
}

/// Starts are spread evenly: no second sees more than its share, however the lanes bunch up.
struct Pace {
    interval: Duration,
    next: Mutex<Instant>,
}

impl Gate {
    pub(super) fn new(concurrency: usize, per_second: Option<u32>) -> Self {
        let interval = per_second.and_then(|count| Duration::from_secs(1).checked_div(count));
        let pace = interval.map(|interval| Pace { interval, next: Mutex::new(Instant::now()) });
        Self { slots: Semaphore::new(concurrency.min(Semaphore::MAX_PERMITS)), pace }
    }

    /// The right to send one request, held until its outcome is known.
    pub(super) async fn enter(&self) -> Option<SemaphorePermit<'_>> {
        // Never closed; the type does not know that.
        let slot = self.slots.acquire().await.ok()?;
        if let Some(pace) = &self.pace {
            tokio::time::sleep_until(pace.start()).await;
        }
        Some(slot)
    }
}

impl Pace {
    /// The moment of the next start, which is taken with it.
    fn start(&self) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let start = (*next).max(Instant::now());
        *next = start + self.interval;
        start
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::mpsc;

    use super::*;

    /// `count` requests that come at once and are answered at once: who starts when.
    async fn starts(gate: Arc<Gate>, count: u32) -> Vec<(u32, Duration)> {
        let begin = Instant::now();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        for number in 0..count {
            let (gate, sender) = (Arc::clone(&gate), sender.clone());
            tokio::spawn(async move {
                let slot = gate.enter().await;
                sender.send((number, begin.elapsed())).unwrap();
                drop(slot);
            });
        }
        drop(sender);
        let mut starts = Vec::new();
        while let Some(start) = receiver.recv().await {
            starts.push(start);
        }
        starts
    }

    #[tokio::test(start_paused = true)]
    async fn starts_are_spread_evenly_and_in_the_order_of_asking() {
        let starts = starts(Arc::new(Gate::new(3, Some(10))), 25).await;
        let expected: Vec<(u32, Duration)> =
            (0..25).map(|number| (number, Duration::from_millis(100) * number)).collect();
        assert_eq!(starts, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_time_is_not_saved_up() {
        let gate = Arc::new(Gate::new(16, Some(10)));
        tokio::time::advance(Duration::from_secs(60)).await;
        let starts = starts(gate, 11).await;
        assert_eq!(starts.last().unwrap().1, Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_rate_only_the_slots_count() {
        let gate = Arc::new(Gate::new(1, None));
        let slot = gate.enter().await;
        let waiting = tokio::time::timeout(Duration::from_secs(3_600), gate.enter()).await;
        assert!(waiting.is_err(), "the only slot is taken");
        drop(slot);
        assert!(gate.enter().await.is_some());
    }
}
