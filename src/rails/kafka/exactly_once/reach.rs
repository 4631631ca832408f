//! Where the partitions end, as far as this process knows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::delivery::Places;

/// Of each partition an offset that it has reached: whatever is sent from now on comes there or later.
/// A topic is in it with all of its partitions, or not at all.
#[derive(Default)]
pub(super) struct Reach(Mutex<Places>);

impl Reach {
    /// The ends of every partition of a topic, as a broker said.
    pub(super) fn learn(&self, topic: &str, ends: &BTreeMap<i32, i64>) {
        let mut places = self.lock();
        let known = places.entry(topic.to_owned()).or_default();
        for (partition, end) in ends {
            let at = known.entry(*partition).or_insert(*end);
            *at = (*at).max(*end);
        }
    }

    /// A record at this offset was acknowledged.
    pub(super) fn passed(&self, topic: &str, partition: i32, offset: i64) {
        if let Some(known) = self.lock().get_mut(topic) {
            let at = known.entry(partition).or_insert(offset + 1);
            *at = (*at).max(offset + 1);
        }
    }

    pub(super) fn places(&self) -> Places {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_only_grows_and_an_acknowledged_record_comes_before_it() {
        let reach = Reach::default();
        reach.passed("t", 0, 5);
        assert!(reach.places().is_empty(), "one partition is not a topic");
        reach.learn("t", &[(0, 10), (1, 0)].into());
        reach.passed("t", 1, 7);
        reach.learn("t", &[(0, 3), (1, 2)].into());
        assert_eq!(reach.places()["t"], [(0, 10), (1, 8)].into());
    }
}
