//! What a broker said of single rows.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use uuid::Uuid;

use crate::delivery::{Outcome, Row};

/// How long what was found out about a row is remembered: it comes back with the next claim or the one after.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
/// More than that are not remembered at once: each costs a transaction to find.
const MOST: usize = 1_000;

/// A transaction that one row has spoilt takes the others with it, so the row gets its outcome the next
/// time, when it is left out and the rows before it have got through. Until that has succeeded it is
/// remembered: another row may spoil the next transaction too, and what is forgotten has to be found again.
///
/// It is said of one attempt. When that is in the ledger the row comes back with the next one.
#[derive(Default)]
pub(super) struct Verdicts(HashMap<(Uuid, i32), (Outcome, Instant)>);

impl Verdicts {
    pub(super) fn remember(&mut self, row: &Row, outcome: Outcome) {
        self.0.retain(|_, (_, at)| at.elapsed() < REMEMBERED_FOR);
        if self.0.len() < MOST {
            self.0.insert(attempt(row), (outcome, Instant::now()));
        }
    }

    pub(super) fn of(&self, row: &Row) -> Option<Outcome> {
        self.0.get(&attempt(row)).map(|(outcome, _)| outcome.clone())
    }

    /// Nothing stands in the way of their outcomes any more.
    pub(super) fn forget<'a>(&mut self, rows: impl Iterator<Item = &'a Row>) {
        if !self.0.is_empty() {
            rows.for_each(|row| drop(self.0.remove(&attempt(row))));
        }
    }
}

fn attempt(row: &Row) -> (Uuid, i32) {
    (row.outbox_id, row.attempt_no)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Failure;

    #[test]
    fn a_verdict_stands_until_it_is_forgotten_and_for_one_attempt() {
        let (mut verdicts, mut first, second) =
            (Verdicts::default(), Row::example(1), Row::example(2));
        let retry = Outcome::Retry(Failure::new("X", "x"));
        verdicts.remember(&first, retry.clone());
        for _ in 0..2 {
            assert_eq!(verdicts.of(&first), Some(retry.clone()), "looked at as often as needed");
        }
        assert_eq!(verdicts.of(&second), None);
        first.attempt_no += 1;
        assert_eq!(verdicts.of(&first), None, "the next attempt is one of its own");
        first.attempt_no -= 1;
        verdicts.forget([&first, &second].into_iter());
        assert_eq!(verdicts.of(&first), None);
    }
}
