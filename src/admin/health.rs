//! Whether the bridge is alive and does its work.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A loop that says nothing for this long is taken for dead.
const LOOP_PATIENCE: Duration = Duration::from_secs(30);
/// Work that waits for this long, while none is finished, is taken for stuck.
const PROGRESS_PATIENCE: Duration = Duration::from_secs(60);

/// What the relay says of itself. It is shared with the probes.
#[derive(Debug)]
pub struct Health(Mutex<Signs>);

/// Signs of life.
#[derive(Debug, Clone, Copy)]
struct Signs {
    beat_at: Instant,
    connected: bool,
    /// Since when work has been waiting without any being finished.
    waiting_since: Option<Instant>,
}

/// Why a probe fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotReady {
    LoopStopped { silent_for: Duration },
    NotConnected,
    NoProgress { waiting_for: Duration },
}

impl fmt::Display for NotReady {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoopStopped { silent_for } => {
                write!(formatter, "the relay has not gone round for {} s", silent_for.as_secs())
            }
            Self::NotConnected => formatter.write_str("there is no connection to the database"),
            Self::NoProgress { waiting_for } => write!(
                formatter,
                "work has been waiting for {} s and none was finished",
                waiting_for.as_secs()
            ),
        }
    }
}

impl Default for Health {
    fn default() -> Self {
        Self::new()
    }
}

impl Health {
    /// Alive, and not connected yet.
    pub fn new() -> Self {
        let signs = Signs { beat_at: Instant::now(), connected: false, waiting_since: None };
        Self(Mutex::new(signs))
    }

    /// The relay's loop went round. It has to do so every few seconds, however long it waits for
    /// work.
    pub fn beat(&self) {
        self.lock().beat_at = Instant::now();
    }

    /// Whether the database answers.
    pub fn connected(&self, connected: bool) {
        self.lock().connected = connected;
    }

    /// Whether there is work that could be done now: due, and neither paused nor halted.
    pub fn waiting(&self, waiting: bool) {
        let mut signs = self.lock();
        *signs = signs.with_work(waiting, Instant::now());
    }

    /// An outcome was written.
    pub fn progressed(&self) {
        let mut signs = self.lock();
        *signs = signs.with_progress(Instant::now());
    }

    /// Whether the process is alive: it alone, whatever becomes of the database and the rails.
    pub fn live(&self) -> Result<(), NotReady> {
        self.lock().liveness(Instant::now())
    }

    /// Whether the bridge does its work.
    pub fn ready(&self) -> Result<(), NotReady> {
        self.lock().readiness(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Signs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signs {
    fn with_work(self, waiting: bool, now: Instant) -> Self {
        let waiting_since = if waiting { self.waiting_since.or(Some(now)) } else { None };
        Self { waiting_since, ..self }
    }

    fn with_progress(self, now: Instant) -> Self {
        Self { waiting_since: self.waiting_since.map(|_| now), ..self }
    }

    fn liveness(&self, now: Instant) -> Result<(), NotReady> {
        let silent_for = now.saturating_duration_since(self.beat_at);
        if silent_for > LOOP_PATIENCE {
            return Err(NotReady::LoopStopped { silent_for });
        }
        Ok(())
    }

    fn readiness(&self, now: Instant) -> Result<(), NotReady> {
        self.liveness(now)?;
        if !self.connected {
            return Err(NotReady::NotConnected);
        }
        let waiting_for = self
            .waiting_since
            .map(|since| now.saturating_duration_since(since))
            .unwrap_or_default();
        if waiting_for > PROGRESS_PATIENCE {
            return Err(NotReady::NoProgress { waiting_for });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn healthy(at: Instant) -> Signs {
        Signs { beat_at: at, connected: true, waiting_since: None }
    }

    #[test]
    fn a_loop_that_goes_round_is_alive_and_one_that_does_not_is_not() {
        let start = Instant::now();
        let signs = healthy(start);
        assert_eq!(signs.liveness(start + LOOP_PATIENCE), Ok(()));
        let late = LOOP_PATIENCE + second(1);
        assert_eq!(signs.liveness(start + late), Err(NotReady::LoopStopped { silent_for: late }));
        assert_eq!(signs.readiness(start + late), Err(NotReady::LoopStopped { silent_for: late }));
    }

    #[test]
    fn without_a_connection_it_is_alive_but_not_ready() {
        let now = Instant::now();
        let signs = Signs { connected: false, ..healthy(now) };
        assert_eq!(signs.liveness(now), Ok(()));
        assert_eq!(signs.readiness(now), Err(NotReady::NotConnected));
    }

    #[test]
    fn work_that_waits_too_long_makes_it_unready_and_an_idle_bridge_stays_ready() {
        let start = Instant::now();
        let late = start + PROGRESS_PATIENCE + second(1);
        let idle = Signs { beat_at: late, ..healthy(start) };
        assert_eq!(idle.readiness(late), Ok(()));
        let waiting = idle.with_work(true, start);
        assert_eq!(waiting.readiness(start + PROGRESS_PATIENCE), Ok(()));
        let waiting_for = PROGRESS_PATIENCE + second(1);
        assert_eq!(waiting.readiness(late), Err(NotReady::NoProgress { waiting_for }));
        let told_again = waiting.with_work(true, late);
        assert_eq!(told_again.readiness(late), Err(NotReady::NoProgress { waiting_for }));
    }

    #[test]
    fn progress_or_an_empty_outbox_starts_the_wait_anew() {
        let start = Instant::now();
        let late = start + PROGRESS_PATIENCE + second(1);
        let waiting = Signs { beat_at: late, ..healthy(start) }.with_work(true, start);
        assert_eq!(waiting.with_progress(start + second(30)).readiness(late), Ok(()));
        assert_eq!(waiting.with_work(false, late).readiness(late), Ok(()));
        let idle = waiting.with_work(false, start).with_progress(start);
        assert_eq!(idle.readiness(late), Ok(()), "progress without waiting work starts no wait");
    }

    #[test]
    fn the_shared_state_passes_on_what_it_is_told() {
        let health = Health::new();
        assert_eq!(health.live(), Ok(()));
        assert_eq!(health.ready(), Err(NotReady::NotConnected));
        health.connected(true);
        health.waiting(true);
        health.progressed();
        health.beat();
        assert_eq!(health.ready(), Ok(()));
    }
}
