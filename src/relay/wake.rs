//! When to look for work.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::trouble::Trouble;
use crate::admin::health::Health;
use crate::admin::metrics;
use crate::config::Secret;
use crate::store::{Ear, SleepKey, StoreError};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How exact a time is: wake-ups that are closer together are one.
const TICK: Duration = Duration::from_millis(50);
/// However long it sleeps, it shows that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Wakes the claim loop: at once, or at a time. Any number of wake-ups while it works mean one more
/// claim afterwards.
pub(super) struct Wake {
    woken: Notify,
    /// How often somebody has told us of new work.
    heard: AtomicU64,
    /// Whether somebody has, on the connection that we have now: notifications may be switched off.
    told: AtomicBool,
    /// When rows that we gave back or have to try again are due, in [`TICK`]s. Bounded, because
    /// delays are: an hour at most.
    times: Mutex<BTreeSet<u64>>,
    /// When the last of the rows is due that we gave back.
    given_back: Mutex<Option<Instant>>,
    base: Instant,
    asleep: watch::Sender<bool>,
    /// Whether whoever commits new work wakes us.
    wakeable: AtomicBool,
    health: Arc<Health>,
}

impl Wake {
    pub(super) fn new(health: Arc<Health>) -> Self {
        Self {
            woken: Notify::new(),
            heard: AtomicU64::new(0),
            told: AtomicBool::new(false),
            times: Mutex::new(BTreeSet::new()),
            given_back: Mutex::default(),
            base: Instant::now(),
            asleep: watch::Sender::new(false),
            wakeable: AtomicBool::new(false),
            health,
        }
    }

    pub(super) fn now(&self) {
        self.woken.notify_one();
    }

    /// Somebody has committed new work.
    fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
        self.now();
    }

    /// Changes with every word of new work.
    pub(super) fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }

    pub(super) fn at(&self, time: std::time::Instant) {
        let after = Instant::from(time).saturating_duration_since(self.base).as_millis();
        let tick = u64::try_from(after.div_ceil(TICK.as_millis())).unwrap_or(u64::MAX);
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = times.insert(tick) && times.first() == Some(&tick);
        // It may be sleeping until a later time. And what has passed since it woke would be forgotten with the
        // next sleep, but the claim that it made meanwhile may have come too early for it.
        if self.forget_what_is_over(&mut times) || is_first {
            self.woken.notify_one();
        }
    }

    /// Rows that we gave back are due at this time.
    pub(super) fn given_back_until(&self, time: std::time::Instant) {
        self.at(time);
        let mut last = self.given_back.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(Some(time.into()));
    }

    /// Whether rows that we gave back are still to be due.
    pub(super) fn something_comes_back(&self) -> bool {
        let last = self.given_back.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last > Instant::now())
    }

    /// Says whether something was.
    fn forget_what_is_over(&self, times: &mut BTreeSet<u64>) -> bool {
        let over = u64::try_from(self.base.elapsed().as_millis() / TICK.as_millis()).unwrap_or(0);
        let any = times.first().is_some_and(|first| *first <= over);
        if any {
            *times = times.split_off(&(over + 1));
        }
        any
    }

    /// The next of the times; one that has passed while nobody slept is the next, too.
    fn next(&self) -> Option<Instant> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times
            .first()
            .map(|tick| self.base + TICK.saturating_mul(u32::try_from(*tick).unwrap_or(u32::MAX)))
    }

    /// The claim that follows finds what was due until now.
    fn wakes_up(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget_what_is_over(&mut times);
    }

    /// A row is done.
    pub(super) fn progressed(&self) {
        self.health.progressed();
    }

    /// Sleeps until somebody wakes us, a time has come, or the poll is due. Says whether there was anything to wait
    /// for: somebody may have woken us before, or a time may have passed.
    pub(super) async fn sleep(&self, poll: Duration) -> bool {
        self.asleep.send_if_modified(|asleep| !std::mem::replace(asleep, true));
        let slept = self.sleep_until(Instant::now() + poll).await;
        self.wakes_up();
        slept
    }

    async fn sleep_until(&self, poll: Instant) -> bool {
        if self.woken.notified().now_or_never().is_some() {
            return false;
        }
        let until = self.next().map_or(poll, |next| next.min(poll));
        let slept = Instant::now() < until;
        while Instant::now() < until {
            self.health.beat();
            let slice = until.saturating_duration_since(Instant::now()).min(HEARTBEAT);
            if tokio::time::timeout(slice, self.woken.notified()).await.is_ok() {
                break;
            }
        }
        slept
    }

    /// Whether we can rely on being told of new work.
    pub(super) fn is_told(&self) -> bool {
        self.is_wakeable() && self.told.load(Ordering::Relaxed)
    }

    /// Whether everybody who commits new work from now on wakes us.
    pub(super) fn is_wakeable(&self) -> bool {
        self.wakeable.load(Ordering::Relaxed)
    }

    /// There is load: producers need not wake us.
    pub(super) fn busy(&self) {
        self.asleep.send_if_modified(|asleep| std::mem::replace(asleep, false));
    }
}

/// Hears notifications for as long as the process lives. While it cannot, polling finds the work.
pub(super) async fn hear(url: Secret, wake: Arc<Wake>) {
    let mut pause = FIRST_PAUSE;
    let mut trouble = Trouble::default();
    loop {
        match Ear::open(&url).await {
            Ok(mut ear) => {
                pause = FIRST_PAUSE;
                trouble.is_over();
                // Something may have been said while nobody heard.
                wake.hear();
                while ear.hear().await.is_ok() {
                    metrics::notified();
                    wake.told.store(true, Ordering::Relaxed);
                    wake.hear();
                }
                wake.told.store(false, Ordering::Relaxed);
                tracing::warn!(
                    "lost the connection that hears of new work; polling until it is back"
                );
            }
            Err(error) if trouble.is_news(&error) => {
                tracing::warn!(%error, "cannot listen for new work; polling alone");
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Holds the key while we sleep or have little to do, so that producers notify; gives it back under
/// load, so that they need not.
pub(super) async fn hold_key(url: Secret, wake: Arc<Wake>) {
    let mut pause = FIRST_PAUSE;
    loop {
        // Without the key nobody notifies, and polling finds the work: `hear` says so in the log.
        if let Ok(key) = SleepKey::open(&url).await {
            pause = FIRST_PAUSE;
            let _ = hold(key, &wake).await;
            wake.wakeable.store(false, Ordering::Relaxed);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn hold(mut key: SleepKey, wake: &Wake) -> Result<(), StoreError> {
    let mut asleep = wake.asleep.subscribe();
    loop {
        // The sender lives in `wake`.
        let _ = asleep.wait_for(|asleep| *asleep).await;
        key.take().await?;
        wake.wakeable.store(true, Ordering::Relaxed);
        // Whoever enqueued before this did not notify, and has committed: look once more.
        wake.hear();
        tokio::select! {
            _ = asleep.wait_for(|asleep| !*asleep) => {}
            () = key.lost() => return Ok(()),
        }
        wake.wakeable.store(false, Ordering::Relaxed);
        key.give_back().await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(1);
    const LONG: Duration = Duration::from_secs(60);

    fn wake() -> Wake {
        Wake::new(Arc::new(Health::new(LONG)))
    }

    fn in_a(delay: Duration) -> std::time::Instant {
        (Instant::now() + delay).into_std()
    }

    /// A breaker that is open says the same time at every look: it must not wake who waits for it.
    #[tokio::test(start_paused = true)]
    async fn a_time_that_is_known_wakes_nobody_again() {
        let wake = wake();
        let later = in_a(Duration::from_secs(10));
        wake.at(later);
        wake.sleep(MOMENT).await;
        wake.at(later);
        let woken = wake.woken.notified();
        assert!(tokio::time::timeout(Duration::from_secs(1), woken).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_passes_during_a_claim_ends_the_next_sleep_at_once() {
        for more in [None, Some(Duration::ZERO), Some(LONG)] {
            let wake = wake();
            wake.at(in_a(4 * TICK));
            assert!(!wake.sleep(LONG).await, "it is the first time");
            // The claim.
            tokio::time::advance(5 * TICK).await;
            if let Some(more) = more {
                wake.at(in_a(more));
            }
            let (began, slept) = (Instant::now(), wake.sleep(LONG).await);
            assert!(!slept && began.elapsed().is_zero(), "{more:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_due_within_the_same_tick_is_looked_for_at_its_end() {
        let wake = wake();
        tokio::time::advance(10 * MOMENT).await;
        wake.at(in_a(Duration::ZERO));
        assert!(!wake.sleep(LONG).await);
        tokio::time::advance(10 * MOMENT).await;
        wake.at(in_a(Duration::ZERO));
        tokio::time::advance(TICK).await;
        let began = Instant::now();
        wake.sleep(LONG).await;
        assert!(began.elapsed().is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_given_back_comes_back_until_the_last_of_it_is_due() {
        let wake = wake();
        assert!(!wake.something_comes_back());
        wake.given_back_until(in_a(2 * TICK));
        wake.given_back_until(in_a(TICK));
        tokio::time::advance(TICK).await;
        assert!(wake.something_comes_back());
        tokio::time::advance(TICK).await;
        assert!(!wake.something_comes_back());
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_that_has_passed_already_is_not_dropped_and_counts_once() {
        let wake = wake();
        tokio::time::advance(LONG).await;
        wake.at(in_a(Duration::ZERO) - TICK);
        assert!(!wake.sleep(LONG).await);
        let began = Instant::now();
        assert!(wake.sleep(LONG).await && began.elapsed() >= LONG);
    }
}
