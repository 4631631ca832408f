//! Rows that are suspected of killing their workers.

use std::collections::HashSet;

use crate::delivery::Row;

/// Lost with its worker so often, a row is sent alone.
const SUSPICIOUS: i64 = 2;

/// Parts a claim into rows to send, suspects that go alone, and rows that wait behind a suspect.
pub(super) fn part(rows: Vec<Row>) -> (Vec<Row>, Vec<Row>, Vec<Row>) {
    if rows.iter().all(|row| row.zombie_count < SUSPICIOUS) {
        return (rows, Vec::new(), Vec::new());
    }
    let (mut clean, mut suspects, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    let mut begun: HashSet<i64> = HashSet::new();
    let mut stopped: HashSet<i64> = HashSet::new();
    for row in rows {
        if stopped.contains(&row.turn_id) {
            behind.push(row);
        } else if row.zombie_count >= SUSPICIOUS {
            stopped.insert(row.turn_id);
            // Its turn comes when it is the head of its lane.
            if begun.contains(&row.turn_id) { behind.push(row) } else { suspects.push(row) }
        } else {
            begun.insert(row.turn_id);
            clean.push(row);
        }
    }
    (clean, suspects, behind)
}
