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
    let mut begun: HashSet<String> = HashSet::new();
    let mut stopped: HashSet<String> = HashSet::new();
    for row in rows {
        let lane = row.participant_id.clone();
        if stopped.contains(&lane) {
            behind.push(row);
        } else if row.zombie_count >= SUSPICIOUS {
            stopped.insert(lane.clone());
            // Its turn comes when it is the head of its lane.
            if begun.contains(&lane) { behind.push(row) } else { suspects.push(row) }
        } else {
            begun.insert(lane);
            clean.push(row);
        }
    }
    (clean, suspects, behind)
}
