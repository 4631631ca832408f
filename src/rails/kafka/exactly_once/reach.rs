//! Where the partitions end, as far as this process knows.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::delivery::Places;

/// Of each partition an offset that it has reached: whatever is sent from now on comes there or later.
/// A topic is in it with all of its partitions, or not at all; the register with those of our shards.
pub(super) struct Reach {
    register: String,
    places: Mutex<Places>,
}

impl Reach {
    pub(super) fn new(register: &str) -> Self {
        Self { register: register.to_owned(), places: Mutex::default() }
    }

    /// The ends of every partition of a topic, as a broker has just said.
    pub(super) fn learn(&self, topic: &str, ends: &BTreeMap<i32, i64>) {
        let mut places = self.lock();
        let known = places.entry(topic.to_owned()).or_default();
        if topic == self.register {
            // That it was further once is how its loss is noticed.
            for (partition, end) in ends {
                let at = known.entry(*partition).or_insert(*end);
                *at = (*at).max(*end);
            }
        } else {
            // A topic that was made anew ends earlier than it did, and what is sent comes there.
            known.clone_from(ends);
        }
    }

    /// The topic is not there any more: where it ended says nothing of one that is made anew.
    pub(super) fn forget(&self, topic: &str) {
        // That it was there once is how the loss of the register is noticed.
        if topic != self.register {
            self.lock().remove(topic);
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

    pub(super) fn topics(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledged_record_comes_before_it() {
        let reach = Reach::new("r");
        reach.passed("t", 0, 5);
        assert!(reach.places().is_empty(), "one partition is not a topic");
        reach.learn("t", &[(0, 10), (1, 0)].into());
        reach.passed("t", 0, 4);
        reach.passed("t", 1, 7);
        assert_eq!(reach.places()["t"], [(0, 10), (1, 8)].into());
    }

    #[test]
    fn what_the_broker_says_counts_also_if_it_is_less_but_the_register_only_grows() {
        let reach = Reach::new("r");
        for topic in ["r", "t"] {
            reach.learn(topic, &[(0, 10), (1, 5), (2, 1)].into());
            reach.learn(topic, &[(0, 3), (1, 6)].into());
        }
        assert_eq!(reach.places()["t"], [(0, 3), (1, 6)].into());
        assert_eq!(reach.places()["r"], [(0, 10), (1, 6), (2, 1)].into());
    }

    #[test]
    fn a_topic_that_is_gone_is_forgotten_but_the_register_never() {
        let reach = Reach::new("r");
        for topic in ["r", "t"] {
            reach.learn(topic, &[(0, 10)].into());
            reach.forget(topic);
        }
        reach.passed("t", 0, 11);
        assert_eq!(reach.topics(), ["r"]);
    }
}
