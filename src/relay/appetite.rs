//! How many rows a rail can stomach: claims are counted in rows, but rows are read, held and sent as bytes.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::delivery::Row;

/// What may be under way on a rail, in bytes of its rows. A database reads this much within a call's time, and a worker
/// has room for the few copies that are made of it on the way to a rail. With the usual 4,000 rows under way it
/// is nothing that rows of up to 16 KB notice.
const BUDGET: usize = 64 * 1024 * 1024;

/// What the claims so far have shown of a rail's rows.
#[derive(Debug)]
pub(super) struct Appetite {
    /// The mean size of the rows of the last claim that brought some, in bytes; half of what it was before, if that is more,
    /// because where there was a large row there may be others between the small ones.
    row_bytes: AtomicUsize,
    /// A claim for more may run out of time.
    most: AtomicUsize,
}

impl Default for Appetite {
    fn default() -> Self {
        Self { row_bytes: AtomicUsize::new(1), most: AtomicUsize::new(usize::MAX) }
    }
}

impl Appetite {
    /// How many rows may be under way at once.
    pub(super) fn capacity(&self) -> usize {
        (BUDGET / self.row_bytes.load(Relaxed)).max(1)
    }

    /// How many rows a claim may ask for.
    pub(super) fn most(&self) -> usize {
        self.most.load(Relaxed)
    }

    /// A claim has brought these. After one that ran out of time it grows slowly: at twice as much every other claim
    /// would run out of time again.
    pub(super) fn brought(&self, rows: &[Row]) {
        let most = self.most();
        self.most.store(most.saturating_add(most / 8 + 1), Relaxed);
        let bytes: usize = rows.iter().map(bytes).sum();
        if let Some(mean) = bytes.checked_div(rows.len()) {
            self.row_bytes.store(mean.max(self.row_bytes.load(Relaxed) / 2).max(1), Relaxed);
        }
    }

    /// A claim for so many rows has run out of time, and would again.
    pub(super) fn ran_out_of_time(&self, rows: usize) {
        self.most.store((rows / 2).max(1), Relaxed);
    }
}

fn bytes(row: &Row) -> usize {
    let headers = row.headers.iter().map(|(name, value)| name.len() + value.len());
    row.payload.len() + headers.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: usize) -> Row {
        let headers = vec![("name".to_owned(), "value!".to_owned())];
        Row { payload: "x".repeat(bytes - 10), headers, ..Row::example(1) }
    }

    fn rows(count: usize, bytes: usize) -> Vec<Row> {
        (0..count).map(|_| row(bytes)).collect()
    }

    #[test]
    fn what_may_be_under_way_is_bounded_in_bytes() {
        let appetite = Appetite::default();
        for (count, bytes, capacity) in
            [(10, 16 * 1024, 4096), (2, 1 << 20, 64), (3, 4 << 20, 16), (1, BUDGET + 1, 1)]
        {
            appetite.brought(&rows(count, bytes));
            assert_eq!(appetite.capacity(), capacity);
            appetite.brought(&[]);
            assert_eq!(appetite.capacity(), capacity, "no rows say nothing of their size");
        }
        appetite.brought(&rows(10, 500));
        assert_eq!(appetite.capacity(), 2, "there may be others like the last");
        (0..20).for_each(|_| appetite.brought(&rows(10, 500)));
        assert!(appetite.capacity() > 100_000 && appetite.most() == usize::MAX);
    }

    #[test]
    fn a_claim_that_ran_out_of_time_asks_for_half_and_one_that_succeeds_for_a_little_more() {
        let appetite = Appetite::default();
        let mut asked = Vec::new();
        for _ in 0..10 {
            let next = appetite.most().min(500);
            asked.push(next);
            appetite.ran_out_of_time(next);
        }
        assert_eq!(asked, [500, 250, 125, 62, 31, 15, 7, 3, 1, 1]);
        let claims = (0..100).take_while(|_| {
            let asks_for_less = appetite.most() < 500;
            appetite.brought(&rows(1, 500));
            asks_for_less
        });
        let claims = claims.count();
        assert!((30..60).contains(&claims), "{claims}");
    }
}
