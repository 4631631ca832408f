//! The last batch of each shard, as far as this worker knows.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::delivery::{Batch, Tenure};

/// What the database told us last: a database that says something else has lost commits, and what it
/// has forgotten may be in the topics.
#[derive(Default)]
pub(super) struct Batches(Mutex<HashMap<i16, (Tenure, i64)>>);

impl Batches {
    /// It is known what became of everything up to this batch.
    pub(super) fn decided(&self, tenure: Tenure, batch: i64) {
        self.lock().insert(tenure.shard, (tenure, batch));
    }

    /// This batch has come with a claim.
    pub(super) fn claimed(&self, batch: Batch) {
        if let Some((_, last)) = self.lock().get_mut(&batch.shard) {
            *last = batch.number.max(*last);
        }
    }

    pub(super) fn last(&self, tenure: Tenure) -> Option<i64> {
        self.lock().get(&tenure.shard).filter(|(of, _)| *of == tenure).map(|(_, last)| *last)
    }

    /// In which epoch we know this shard.
    pub(super) fn tenure(&self, shard: i16) -> Option<Tenure> {
        self.lock().get(&shard).map(|(tenure, _)| *tenure)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<i16, (Tenure, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_batch_of_an_epoch_is_the_decided_one_or_the_claimed_one_after_it() {
        let (batches, tenure) = (Batches::default(), Tenure { shard: 3, epoch: 1 });
        batches.claimed(Batch { shard: 3, number: 9 });
        assert_eq!(batches.last(tenure), None, "of a shard that was never ready");
        batches.decided(tenure, 5);
        batches.claimed(Batch { shard: 3, number: 6 });
        batches.claimed(Batch { shard: 3, number: 6 });
        assert_eq!(batches.last(tenure), Some(6));
        batches.decided(tenure, 5);
        assert_eq!(batches.last(tenure), Some(5), "the database has the last word");
        let later = Tenure { shard: 3, epoch: 2 };
        assert_eq!(batches.last(later), None);
        assert_eq!(batches.tenure(3), Some(tenure));
    }
}
