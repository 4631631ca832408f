//! How many rows of a rail are under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// Counts the rows of a rail from their claim until their outcome is written down.
#[derive(Debug, Default)]
pub struct Slots {
    taken: AtomicUsize,
    freed: Notify,
    /// Those of the rail, where these are of one of its shards.
    all: Option<Arc<Slots>>,
}

/// Rows that are under way; dropped when they are not any more.
#[derive(Debug)]
pub struct Taken {
    slots: Arc<Slots>,
    rows: usize,
}

impl Slots {
    /// What is taken of these counts among all of the rail.
    pub fn within(all: &Arc<Self>) -> Self {
        Self { all: Some(Arc::clone(all)), ..Self::default() }
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Acquire)
    }

    pub fn take(self: &Arc<Self>, rows: usize) -> Taken {
        self.add(rows);
        Taken { slots: Arc::clone(self), rows }
    }

    fn add(&self, rows: usize) {
        self.taken.fetch_add(rows, Ordering::AcqRel);
        if let Some(all) = &self.all {
            all.add(rows);
        }
    }

    fn give_back(&self, rows: usize) {
        self.taken.fetch_sub(rows, Ordering::AcqRel);
        self.freed.notify_one();
        if let Some(all) = &self.all {
            all.give_back(rows);
        }
    }

    /// Returns when some were given back since the last call.
    pub async fn freed(&self) {
        self.freed.notified().await;
    }
}

impl Taken {
    /// One of them, to be given back on its own.
    pub(super) fn split(&mut self) -> Self {
        let rows = self.rows.min(1);
        self.rows -= rows;
        Self { slots: Arc::clone(&self.slots), rows }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.rows > 0 {
            self.slots.give_back(self.rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rows_are_given_back_one_by_one_or_together() {
        let slots = Arc::new(Slots::default());
        let mut taken = slots.take(3);
        let one = taken.split();
        assert_eq!(slots.taken(), 3);
        drop(one);
        assert_eq!(slots.taken(), 2);
        slots.freed().await;
        drop(taken);
        assert_eq!(slots.taken(), 0);
        slots.freed().await;
    }
}
