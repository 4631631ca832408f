//! What becomes of leases that end without an outcome, or are made longer, by the book.

use std::collections::BTreeSet;

use super::outcomes::{Asked, entry, lanes_held};
use super::state::{FREE, LaneId, Name, Row, State, Stop};

/// A lease that has expired: one ZOMBIE_REQUEUE a row; the fifth pauses the lane.
pub(super) fn requeue(state: &mut State, now: i64, lane: &LaneId) -> Vec<Name> {
    let rows: Vec<_> =
        state.lane(lane).into_iter().map(|(name, row)| (name, row.clone())).collect();
    let mut requeued = Vec::new();
    for (name, row) in rows {
        let Some(lease) = &row.lease else { continue };
        let number = state.attempts(name).len() as i32 + 1;
        let entry = entry(
            &row,
            number,
            "ZOMBIE_REQUEUE",
            true,
            &lease.worker,
            Some(lease.token),
            Some("LEASE_EXPIRED"),
        );
        let tries = state.ledger.entry(name).or_default();
        tries.push(entry);
        if tries.iter().filter(|entry| entry.state == "ZOMBIE_REQUEUE").count() >= 5 {
            let stop = Stop { paused: true, ..state.stop(lane) };
            state.set_stop(lane, stop);
        }
        let again = Row {
            lease: None,
            attempts: row.attempts.max(number),
            next_at: now + 1000,
            solo: row.solo || row.lane.1 == FREE,
            ..row
        };
        state.rows.insert(name, again);
        requeued.push(name);
    }
    requeued
}

/// Gives back what was asked for and, where there is order, what stands behind it.
pub(super) fn release(
    state: &mut State,
    now: i64,
    worker: &str,
    asked: &[Asked],
    delay_seconds: i32,
) -> Vec<Name> {
    let mut released = Vec::new();
    let until = now + i64::from(delay_seconds) * 1000;
    for (name, row, wanted) in held(state, now, worker, asked) {
        let unordered = row.lane.1 == FREE;
        let behind = released.iter().any(|earlier: &Name| {
            let earlier = &state.rows[earlier];
            earlier.lane_id() == row.lane_id() && earlier.position.0 <= row.position.0
        });
        if wanted || (!unordered && behind) {
            let back = state.rows.get_mut(&name).expect("a row");
            back.lease = None;
            back.next_at = back.next_at.max(until);
            back.solo |= unordered;
            released.push(name);
        }
    }
    released
}

/// A longer lease for the lanes of what was asked for.
pub(super) fn renew(
    state: &mut State,
    now: i64,
    worker: &str,
    asked: &[Asked],
    seconds: i32,
) -> Vec<Name> {
    let rows = held(state, now, worker, asked);
    let lanes: BTreeSet<_> =
        rows.iter().filter(|(.., wanted)| *wanted).map(|(_, row, _)| row.lane_id()).collect();
    let until = now + i64::from(seconds) * 1000;
    for (name, row, _) in &rows {
        if let Some(lease) = &mut state.rows.get_mut(name).expect("a row").lease
            && lanes.contains(&row.lane_id())
        {
            lease.expires_at = lease.expires_at.max(until);
        }
    }
    rows.iter().filter(|(.., wanted)| *wanted).map(|(name, ..)| *name).collect()
}

/// What a worker still holds in the lanes concerned, in order, and whether it was asked for.
fn held(state: &State, now: i64, worker: &str, asked: &[Asked]) -> Vec<(Name, Row, bool)> {
    let names: Vec<Name> = asked.iter().map(|asked| asked.name).collect();
    let lanes = lanes_held(state, worker, &names);
    let mut rows = Vec::new();
    for (name, row) in lanes.iter().flat_map(|lane| state.lane(lane)) {
        let Some(lease) = row.lease.as_ref().filter(|l| l.worker == worker && l.expires_at > now)
        else {
            continue;
        };
        // A row that is named twice counts as it is named first.
        let first = asked.iter().find(|asked| asked.name == name);
        rows.push((name, row.clone(), first.is_some_and(|asked| asked.token == lease.token)));
    }
    rows
}
