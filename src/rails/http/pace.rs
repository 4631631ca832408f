//! How many requests may be under way, and how fast they may start.

use std::time::Duration;

use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::time::Instant;

/// Lets requests through: first come, first served.
pub(super) struct Gate {
    slots: Semaphore,
    pace: Option<Pace>,
}

/// Starts are spread evenly: no second sees more than its share, however the lanes bunch up.
struct Pace {
    interval: Duration,
    /// The moment from which on the next may start. Held by whoever waits for it, first come, first served.
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
            pace.start().await;
        }
        Some(slot)
    }
}

impl Pace {
    /// Waits for the moment of the next start, and takes it: whoever goes away before it leaves it to the next. A
    /// start that came late, because timers do, does not make those late that had asked before.
    async fn start(&self) {
        let asked = Instant::now();
        let mut next = self.next.lock().await;
        let start = asked.max(*next);
        tokio::time::sleep_until(start).await;
        *next = start + self.interval;
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

    /// As lanes do that are given back while they stand in line.
    #[tokio::test(start_paused = true)]
    async fn whoever_goes_away_leaves_the_start_to_the_next() {
        let gate = Gate::new(16, Some(2));
        let begin = Instant::now();
        drop(gate.enter().await);
        let in_line = futures_util::future::join_all((0..15).map(|_| gate.enter()));
        let gave_up = tokio::time::timeout(Duration::from_millis(200), in_line).await;
        assert!(gave_up.is_err(), "their starts are half a second apart");
        drop(gate.enter().await);
        assert_eq!(begin.elapsed(), Duration::from_millis(500));
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
