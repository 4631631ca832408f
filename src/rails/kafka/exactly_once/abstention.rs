//! When a worker leaves its shards to others, and when it asks for some again.
//!
//! Who reaches the database and not the brokers would keep its shards for ever, and nobody else could
//! deliver them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failpoint::hurried;

/// For so long each of our shards has been without a broker before all of them are given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// For so long no shards are asked for; twice as long each time that it was in vain.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
pub(super) struct Abstention(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    until: Option<Instant>,
    /// How long the next one is, unless something succeeds before.
    pause: Option<Duration>,
}

impl Abstention {
    pub(super) fn is_on(&self) -> bool {
        self.lock().until.is_some()
    }

    /// Begins one if every shard of ours has been without a broker for too long. Returns whether it did.
    pub(super) fn consider(&self, without: impl IntoIterator<Item = Duration>) -> bool {
        let shortest = without.into_iter().min();
        let mut inner = self.lock();
        if inner.until.is_some() || shortest.is_none_or(|without| without < hurried(PATIENCE)) {
            return false;
        }
        let pause = inner.pause.unwrap_or(FIRST_PAUSE);
        inner.until = Some(Instant::now() + hurried(pause));
        inner.pause = Some((pause * 2).min(LONGEST_PAUSE));
        true
    }

    /// Whether it has lasted long enough to look for a broker.
    pub(super) fn may_end(&self) -> bool {
        self.lock().until.is_some_and(|until| until <= Instant::now())
    }

    /// A broker answers: it is worth another try.
    pub(super) fn end(&self) {
        self.lock().until = None;
    }

    /// A shard of ours has a producer.
    pub(super) fn succeeded(&self) {
        self.lock().pause = None;
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = PATIENCE;
    const SHORT: Duration = Duration::from_secs(29);

    fn left(abstention: &Abstention) -> u64 {
        let until = abstention.lock().until.unwrap();
        (until - Instant::now() + Duration::from_millis(500)).as_secs()
    }

    #[test]
    fn it_begins_when_no_shard_has_found_a_broker_for_long() {
        let abstention = Abstention::default();
        assert!(!abstention.consider([]), "without shards there is nothing to give up");
        assert!(!abstention.consider([LONG, SHORT]), "one that works is enough");
        assert!(abstention.consider([LONG, LONG]) && abstention.is_on());
        assert!(!abstention.consider([LONG]), "it is on already");
        assert!(!abstention.may_end());
        abstention.end();
        assert!(!abstention.is_on());
    }

    #[test]
    fn each_that_was_in_vain_makes_the_next_twice_as_long_within_bounds() {
        let abstention = Abstention::default();
        for seconds in [30, 60, 120, 240, 480, 600, 600] {
            assert!(abstention.consider([LONG]));
            assert_eq!(left(&abstention), seconds);
            abstention.end();
        }
        abstention.succeeded();
        assert!(abstention.consider([LONG]));
        assert_eq!(left(&abstention), 30);
    }
}
