//! Whether the machine was ours: the host of a virtual machine may give its processors to others.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// So long before and after a moment the processors must have been ours.
const BEFORE: Duration = Duration::from_millis(500);
const AFTER: Duration = Duration::from_secs(1);
/// Of the processors' time, in hundredths.
const MOST_TAKEN: u64 = 2;

#[derive(Clone, Copy)]
struct Look {
    at: Instant,
    taken: u64,
    all: u64,
}

/// Watches the processors until it is dropped.
pub(crate) struct Machine {
    looks: Arc<Mutex<Vec<Look>>>,
    watcher: JoinHandle<()>,
}

impl Machine {
    pub(crate) fn watched() -> Self {
        let looks = Arc::new(Mutex::new(vec![look()]));
        let kept = Arc::clone(&looks);
        let watcher = tokio::spawn(async move {
            loop {
                tokio::time::sleep(LOOK_EVERY).await;
                kept.lock().unwrap().push(look());
            }
        });
        Self { looks, watcher }
    }

    /// Whether its processors were ours around this moment.
    pub(crate) fn was_ours(&self, moment: Instant) -> bool {
        let looks = self.looks.lock().unwrap();
        let before = looks.iter().rev().find(|look| look.at + BEFORE <= moment);
        let after = looks.iter().find(|look| look.at >= moment + AFTER);
        let before = before.or(looks.first()).unwrap();
        let after = after.or(looks.last()).unwrap();
        100 * (after.taken - before.taken) <= MOST_TAKEN * (after.all - before.all)
    }

    /// How much of the processors' time others had since then, in hundredths.
    pub(crate) fn taken_since(&self, moment: Instant) -> f64 {
        let looks = self.looks.lock().unwrap();
        let from = looks.iter().find(|look| look.at >= moment).or(looks.first()).unwrap();
        let to = looks.last().unwrap();
        100.0 * (to.taken - from.taken) as f64 / (to.all - from.all).max(1) as f64
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal, and what is in the first two already.
fn look() -> Look {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let ticks = stat.lines().next().unwrap().split_whitespace().skip(1).take(8);
    let ticks: Vec<u64> = ticks.map(|ticks| ticks.parse().unwrap()).collect();
    Look { at: Instant::now(), taken: ticks[7], all: ticks.iter().sum() }
}
