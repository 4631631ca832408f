//! How long a lane is ours.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A lease, measured on this process's monotonic clock from before the claim was called, so that
/// neither a slow answer nor a clock that jumps makes it look longer than it is.
#[derive(Debug)]
pub struct Lease {
    base: Instant,
    ends_after_ms: AtomicU64,
    lost: AtomicBool,
}

impl Lease {
    /// `asked_at` is the moment before the claim was called.
    pub fn new(asked_at: Instant, length: Duration) -> Self {
        let lease =
            Self { base: asked_at, ends_after_ms: AtomicU64::new(0), lost: AtomicBool::new(false) };
        lease.renew(asked_at, length);
        lease
    }

    /// The server has granted `length` at a moment after `asked_at`.
    pub fn renew(&self, asked_at: Instant, length: Duration) {
        let ends = asked_at.saturating_duration_since(self.base) + length;
        let ends_ms = u64::try_from(ends.as_millis()).unwrap_or(u64::MAX);
        self.ends_after_ms.fetch_max(ends_ms, Ordering::Relaxed);
    }

    /// The server says that the lane is not ours any more: nothing of it may be sent.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// What is left of it; nothing when it is lost.
    pub fn time_left(&self) -> Duration {
        if self.lost.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let ends = Duration::from_millis(self.ends_after_ms.load(Ordering::Relaxed));
        (self.base + ends).saturating_duration_since(Instant::now())
    }

    /// Whether a send that may take `longest` ends before the lease does.
    pub fn covers(&self, longest: Duration) -> bool {
        self.time_left() > longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_covers_only_what_ends_before_it() {
        let lease = Lease::new(Instant::now(), Duration::from_secs(60));
        assert!(lease.covers(Duration::from_secs(30)));
        assert!(!lease.covers(Duration::from_secs(61)));
    }

    #[test]
    fn a_renewal_never_shortens_and_a_lost_lease_covers_nothing() {
        let lease = Lease::new(Instant::now(), Duration::from_secs(60));
        lease.renew(Instant::now(), Duration::from_secs(1));
        assert!(lease.covers(Duration::from_secs(30)));
        lease.lose();
        assert!(!lease.covers(Duration::ZERO));
    }

    #[test]
    fn a_slow_answer_to_the_claim_is_taken_off_the_lease() {
        let asked_at = Instant::now().checked_sub(Duration::from_secs(50)).unwrap();
        assert!(!Lease::new(asked_at, Duration::from_secs(60)).covers(Duration::from_secs(20)));
    }
}
