//! Whether the bridge is alive and does its work.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// A loop that says nothing for this long is taken for dead.
const LOOP_PATIENCE: Duration = Duration::from_secs(30);

/// What the relay says of itself. It is shared with the probes.
#[derive(Debug)]
pub struct Health {
    signs: Mutex<Signs>,
    beats: watch::Sender<()>,
}

/// Signs of life.
#[derive(Debug, Clone)]
struct Signs {
    beat_at: Instant,
    /// Since when the database has not answered.
    lost_at: Option<Instant>,
    waiting: Option<Waiting>,
    /// Work that waits for longer, while none is finished, is taken for stuck.
    progress_patience: Duration,
}

/// Work that waits.
#[derive(Debug, Clone)]
struct Waiting {
    /// Since when it has, without any being finished.
    since: Instant,
    reason: String,
}

/// Why a probe fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotReady {
    LoopStopped { silent_for: Duration },
    NotConnected,
    NoProgress { waiting_for: Duration, reason: String },
}

impl fmt::Display for NotReady {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoopStopped { silent_for } => {
                write!(formatter, "the relay has not gone round for {} s", silent_for.as_secs())
            }
            Self::NotConnected => formatter.write_str("there is no connection to the database"),
            Self::NoProgress { waiting_for, reason } => write!(
                formatter,
                "work has been waiting for {} s and none was finished: {reason}",
                waiting_for.as_secs()
            ),
        }
    }
}

impl Health {
    /// Alive, and not connected yet.
    pub fn new(progress_patience: Duration) -> Self {
        let now = Instant::now();
        let signs = Signs { beat_at: now, lost_at: Some(now), waiting: None, progress_patience };
        Self { signs: Mutex::new(signs), beats: watch::Sender::new(()) }
    }

    /// The relay's loop went round. It has to do so every few seconds, however long it waits for
    /// work.
    pub fn beat(&self) {
        self.lock().beat_at = Instant::now();
        self.beats.send_replace(());
    }

    /// Changes with each beat.
    pub fn beats(&self) -> watch::Receiver<()> {
        self.beats.subscribe()
    }

    /// Whether the database answers.
    pub fn connected(&self, connected: bool) {
        let mut signs = self.lock();
        signs.lost_at = if connected { None } else { signs.lost_at.or(Some(Instant::now())) };
    }

    /// What the work waits for that could be done now: due, and neither paused nor halted. Nothing when
    /// there is none.
    pub fn waiting(&self, reason: Option<String>) {
        self.lock().work(reason, Instant::now());
    }

    /// A row was delivered, or failed for good.
    pub fn progressed(&self) {
        self.lock().progress(Instant::now());
    }

    /// Whether the process is alive: it alone, whatever becomes of the database and the rails.
    pub fn live(&self) -> Result<(), NotReady> {
        self.lock().liveness(Instant::now())
    }

    /// Whether the bridge does its work.
    pub fn ready(&self) -> Result<(), NotReady> {
        self.lock().readiness(Instant::now())
    }

    /// Whether there has been no progress for too long, be it for want of a connection.
    pub fn stalled(&self) -> bool {
        self.lock().is_stalled(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, Signs> {
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Signs {
    fn work(&mut self, reason: Option<String>, now: Instant) {
        let since = self.waiting.as_ref().map_or(now, |waiting| waiting.since);
        self.waiting = reason.map(|reason| Waiting { since, reason });
    }

    fn progress(&mut self, now: Instant) {
        if let Some(waiting) = &mut self.waiting {
            waiting.since = now;
        }
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
        if self.lost_at.is_some() {
            return Err(NotReady::NotConnected);
        }
        if let Some(Waiting { since, reason }) = &self.waiting
            && self.is_too_long(*since, now)
        {
            let waiting_for = now.saturating_duration_since(*since);
            return Err(NotReady::NoProgress { waiting_for, reason: reason.clone() });
        }
        Ok(())
    }

    fn is_stalled(&self, now: Instant) -> bool {
        let waiting_since = self.waiting.as_ref().map(|waiting| waiting.since);
        [self.lost_at, waiting_since]
            .into_iter()
            .flatten()
            .any(|since| self.is_too_long(since, now))
    }

    fn is_too_long(&self, since: Instant, now: Instant) -> bool {
        now.saturating_duration_since(since) > self.progress_patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    fn healthy(at: Instant) -> Signs {
        Signs { beat_at: at, lost_at: None, waiting: None, progress_patience: PATIENCE }
    }

    fn waiting(since: Instant, now: Instant) -> Signs {
        let mut signs = healthy(now);
        signs.work(Some("kafka is down".to_owned()), since);
        signs
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
    fn without_a_connection_it_is_alive_but_not_ready_and_stalls_in_the_end() {
        let now = Instant::now();
        let signs = Signs { lost_at: Some(now), ..healthy(now) };
        assert_eq!(signs.liveness(now), Ok(()));
        assert_eq!(signs.readiness(now), Err(NotReady::NotConnected));
        assert!(!signs.is_stalled(now + PATIENCE));
        assert!(signs.is_stalled(now + PATIENCE + second(1)));
    }

    #[test]
    fn work_that_waits_too_long_makes_it_unready_and_an_idle_bridge_stays_ready() {
        let start = Instant::now();
        let late = start + PATIENCE + second(1);
        assert_eq!(healthy(late).readiness(late), Ok(()));
        assert_eq!(waiting(start, start + PATIENCE).readiness(start + PATIENCE), Ok(()));
        let mut stuck = waiting(start, late);
        assert!(stuck.is_stalled(late));
        // Told again, for another reason: it has waited since the first time.
        stuck.work(Some("bank is down".to_owned()), late);
        let said = stuck.readiness(late).unwrap_err().to_string();
        assert_eq!(said, "work has been waiting for 61 s and none was finished: bank is down");
        assert_eq!(stuck.liveness(late), Ok(()));
    }

    #[test]
    fn progress_or_an_empty_outbox_starts_the_wait_anew() {
        let start = Instant::now();
        let late = start + PATIENCE + second(1);
        let mut moving = waiting(start, late);
        moving.progress(start + second(30));
        assert_eq!(moving.readiness(late), Ok(()));
        let mut empty = waiting(start, late);
        empty.work(None, late);
        assert_eq!(empty.readiness(late), Ok(()));
        empty.progress(start);
        assert_eq!(empty.readiness(late), Ok(()), "progress without waiting work starts no wait");
    }

    #[test]
    fn the_shared_state_passes_on_what_it_is_told() {
        let health = Health::new(PATIENCE);
        let mut beats = health.beats();
        assert_eq!(health.live(), Ok(()));
        assert_eq!(health.ready(), Err(NotReady::NotConnected));
        health.connected(true);
        health.waiting(Some("kafka is down".to_owned()));
        health.progressed();
        assert!(!beats.has_changed().unwrap());
        health.beat();
        assert!(beats.has_changed().unwrap());
        beats.mark_unchanged();
        assert_eq!(health.ready(), Ok(()));
        assert!(!health.stalled());
    }
}
