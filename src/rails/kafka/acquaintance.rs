//! Which partitions of a topic know a producer.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The partitions of one topic, seen from one producer.
///
/// A broker refuses a batch that does not follow the producer's last one, and that keeps the rows
/// behind a refused batch from getting past it. But from a producer of which a partition has
/// nothing yet it takes any sequence number: the second batch of such a producer gets in although
/// the first was refused. So a partition is introduced with one row, and only when it has that do
/// others of the same lane follow.
pub(super) struct Acquaintance {
    known: Vec<AtomicBool>,
    unknown: AtomicUsize,
}

impl Acquaintance {
    pub(super) fn new(partitions: usize) -> Self {
        let known = (0..partitions).map(|_| AtomicBool::new(false)).collect();
        Self { known, unknown: AtomicUsize::new(partitions) }
    }

    pub(super) fn partitions(&self) -> usize {
        self.known.len()
    }

    pub(super) fn with_all(&self) -> bool {
        self.unknown.load(Ordering::Acquire) == 0
    }

    /// This partition has acknowledged a record. Says whether it is one that we know of: a topic
    /// can get more of them.
    pub(super) fn make(&self, partition: i32) -> bool {
        let Some(known) = usize::try_from(partition).ok().and_then(|index| self.known.get(index))
        else {
            return false;
        };
        if !known.swap(true, Ordering::AcqRel) {
            self.unknown.fetch_sub(1, Ordering::AcqRel);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_is_known_when_every_partition_has_acknowledged_something() {
        let acquaintance = Acquaintance::new(2);
        assert!(acquaintance.make(0) && acquaintance.make(0));
        assert!(!acquaintance.with_all());
        assert!(acquaintance.make(1) && acquaintance.with_all());
    }

    #[test]
    fn a_partition_that_was_added_is_noticed() {
        let acquaintance = Acquaintance::new(1);
        assert!(!acquaintance.make(1) && !acquaintance.make(-1));
        assert!(!acquaintance.with_all());
    }
}
