//! What holds after every step whatever the model says: laws of the tables among themselves.

use std::collections::{BTreeMap, BTreeSet};

use super::snapshot::{SeenLane, Snapshot, Turn};
use super::state::{DLQ, FREE, Name, Row, State};

/// Every broken law, one line each. `before` is the state of one step ago.
pub(super) fn broken(now: Moment<'_>, before: &State) -> Vec<String> {
    let mut faults = Vec::new();
    lanes_of_rows(now.snapshot, &mut faults);
    turns_of_lanes(now.snapshot, &mut faults);
    leases(now.snapshot, &mut faults);
    for (lane, turn) in waiting(now.snapshot) {
        in_time(now.snapshot, lane, turn, now.at, &mut faults);
    }
    numbering(now.snapshot, before, &mut faults);
    order(&now.snapshot.state, &mut faults);
    burials(now.snapshot, &mut faults);
    keys(&now.snapshot.state, &mut faults);
    sequences(&now.snapshot.state, &mut faults);
    faults
}

/// A snapshot and the time at which it was taken.
#[derive(Clone, Copy)]
pub(super) struct Moment<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) at: i64,
}

fn lanes_of_rows(seen: &Snapshot, faults: &mut Vec<String>) {
    let lanes: BTreeSet<_> = seen.lanes.values().map(|lane| &lane.id).collect();
    for (name, row) in &seen.state.rows {
        if !lanes.contains(&row.lane_id()) {
            faults.push(format!("{name:?} is pending and has no lane"));
        }
    }
}

fn turns_of_lanes(seen: &Snapshot, faults: &mut Vec<String>) {
    let mut turns: BTreeMap<i64, Vec<&Turn>> = BTreeMap::new();
    for turn in &seen.turns {
        turns.entry(turn.lane).or_default().push(turn);
        if !seen.lanes.contains_key(&turn.lane) {
            faults.push(format!("{turn:?} has no lane"));
        }
    }
    for (id, lane) in &seen.lanes {
        let turns = turns.get(id).map_or(&[][..], Vec::as_slice);
        let leased = turns.iter().any(|turn| turn.worker.is_some());
        let right = match turns.len() {
            0 => lane.halted || seen.state.is_stopped(&lane.id),
            1 => !lane.halted && (leased || !lane.paused),
            _ => false,
        };
        if !right {
            faults.push(format!("{lane:?} has these turns: {turns:?}"));
        }
    }
}

/// A leased turn has its rows and each leased row its turn; they are the head of their lane.
fn leases(seen: &Snapshot, faults: &mut Vec<String>) {
    let turns: BTreeMap<i64, &Turn> = seen.turns.iter().map(|turn| (turn.turn, turn)).collect();
    for (name, row) in &seen.state.rows {
        let Some(lease) = &row.lease else { continue };
        let turn = seen.turn_of.get(name).and_then(|turn| turns.get(turn));
        let fits = turn.is_some_and(|turn| {
            turn.worker.as_ref() == Some(&lease.worker)
                && turn.due_at == lease.expires_at
                && turn.last.is_some_and(|last| row.position.0 <= last)
                && seen.lanes.get(&turn.lane).is_some_and(|lane| lane.id == row.lane_id())
        });
        if !fits {
            faults.push(format!("{name:?} is leased by {lease:?}, but its turn is {turn:?}"));
        }
    }
    for turn in seen.turns.iter().filter(|turn| turn.worker.is_some()) {
        if !seen.turn_of.values().any(|id| *id == turn.turn) {
            faults.push(format!("{turn:?} is leased, but no row is"));
        }
    }
    for lane in seen.lanes.values().filter(|lane| lane.id.1 != FREE) {
        prefix(seen, lane, faults);
    }
}

/// What is in flight is the head of the lane, without a gap, and one worker's. Dead letters may
/// commit in another order than they were numbered in, and so come in front of those in flight.
fn prefix(seen: &Snapshot, lane: &SeenLane, faults: &mut Vec<String>) {
    let rows = seen.state.lane(&lane.id);
    let leased: Vec<bool> = rows.iter().map(|(_, row)| row.lease.is_some()).collect();
    let turns: BTreeSet<_> = rows.iter().filter_map(|(name, _)| seen.turn_of.get(name)).collect();
    let gap = leased.windows(2).any(|pair| !pair[0] && pair[1]);
    if turns.len() > 1 || (gap && lane.id.1 != DLQ) {
        faults.push(format!("{lane:?} is leased in pieces: {rows:?}"));
    }
}

fn waiting(seen: &Snapshot) -> impl Iterator<Item = (&SeenLane, &Turn)> {
    let waits = seen.turns.iter().filter(|turn| turn.worker.is_none());
    waits.filter_map(|turn| seen.lanes.get(&turn.lane).map(|lane| (lane, turn)))
}

/// A lane is looked at when its head is due; one that looked empty within two seconds.
fn in_time(seen: &Snapshot, lane: &SeenLane, turn: &Turn, now: i64, faults: &mut Vec<String>) {
    const LONGEST_REST_MS: i64 = 2_000;
    let rows = seen.state.lane(&lane.id);
    let last = rows.iter().map(|(_, row)| row.next_at).max().unwrap_or(now);
    let latest = match rows.first() {
        // One that came in front of others waits with them.
        Some(_) if lane.id.1 == DLQ => last.max(now + LONGEST_REST_MS),
        Some((_, head)) if turn.empty_looks == 0 => head.next_at.max(now),
        Some((_, head)) => head.next_at.max(now + LONGEST_REST_MS),
        None => now + LONGEST_REST_MS,
    };
    if turn.due_at > latest {
        faults.push(format!(
            "{lane:?} is looked at too late: {turn:?}, its head is {:?}",
            rows.first()
        ));
    }
    let missed = rows.first().is_some_and(|(_, head)| turn.head > head.position.0);
    if missed && lane.id.1 != DLQ {
        faults.push(format!("{turn:?} starts behind the head of {lane:?}"));
    }
}

/// Attempts are numbered without a gap and end with at most one terminal outcome, which is not
/// the outcome of a row that is still pending.
fn numbering(seen: &Snapshot, before: &State, faults: &mut Vec<String>) {
    for (name, tries) in seen.state.ledger.iter().chain(&seen.state.archive) {
        let gapless = tries.iter().zip(1..).all(|(entry, number)| entry.number == number);
        let terminal = tries.iter().filter(|entry| entry.is_terminal()).count();
        let last_is_terminal = tries.last().is_some_and(super::state::Entry::is_terminal);
        let pending = seen.state.rows.contains_key(name);
        if !gapless || terminal + usize::from(pending) != 1 || last_is_terminal == pending {
            faults.push(format!("the ledger of {name:?} (pending: {pending}) is {tries:?}"));
        }
    }
    for (name, row) in &seen.state.rows {
        let known = seen.state.attempts(*name).last().map_or(0, |entry| entry.number);
        let earlier = before.rows.get(name).map_or(0, |row: &Row| row.attempts);
        if row.attempts != known || row.attempts < earlier {
            faults.push(format!(
                "{name:?} counts {} attempts, it had {earlier}, the ledger {known}",
                row.attempts
            ));
        }
    }
    for name in before.rows.keys().chain(before.ledger.keys()) {
        let somewhere = seen.state.rows.contains_key(name)
            || seen.state.ledger.contains_key(name)
            || seen.state.archive.contains_key(name);
        if !somewhere {
            faults.push(format!("{name:?} is lost"));
        }
    }
}

/// On a rail with order nothing is finished while an earlier row of its lane, in its first life,
/// is pending.
fn order(state: &State, faults: &mut Vec<String>) {
    let first = |rail: &str| rail != FREE && rail != DLQ;
    for (name, row) in
        state.rows.iter().filter(|(_, row)| first(&row.lane.1) && row.replay_of.is_none())
    {
        let overtaken = state.ledger.iter().filter_map(|(late, tries)| Some((late, tries.last()?)));
        for (late, entry) in overtaken {
            let overtakes = entry.lane == row.lane
                && entry.sequence > row.sequence
                && entry.replay_of.is_none()
                && entry.is_terminal();
            if overtakes {
                faults.push(format!("{late:?} was finished before {name:?} of the same lane"));
            }
        }
    }
}

/// A FAILED row has its failure and one dead letter, and nothing else has.
fn burials(seen: &Snapshot, faults: &mut Vec<String>) {
    let failed = |tries: &[super::state::Entry]| tries.iter().any(|entry| entry.state == "FAILED");
    let hot: BTreeSet<_> = seen
        .state
        .ledger
        .iter()
        .filter(|(_, tries)| failed(tries))
        .map(|(name, _)| *name)
        .collect();
    let failures: BTreeSet<_> = seen.state.failures.keys().map(|id| Name::Own(*id)).collect();
    if hot != failures {
        faults.push(format!("these rows FAILED: {hot:?}, but the failures are {failures:?}"));
    }
    let old = seen.state.archive.iter().filter(|(_, tries)| failed(tries)).map(|(name, _)| *name);
    let all: BTreeSet<_> = hot.iter().copied().chain(old).collect();
    let buried: BTreeSet<_> = seen.letters.keys().map(|id| Name::Own(*id)).collect();
    if all != buried || seen.letters.values().any(|letters| letters.len() != 1) {
        faults.push(format!(
            "these rows FAILED: {all:?}, but the dead letters are {:?}",
            seen.letters
        ));
    }
}

fn keys(state: &State, faults: &mut Vec<String>) {
    let known =
        |id| state.rows.contains_key(&Name::Own(id)) || state.ledger.contains_key(&Name::Own(id));
    for (key, id) in state.keys.iter().filter(|(_, id)| !known(**id)) {
        faults.push(format!("{key:?} stands for {id}, which is nowhere"));
    }
    for (name, row) in
        state.rows.iter().filter(|(_, row)| row.replay_of.is_none() && row.lane.1 != DLQ)
    {
        if state.keys.get(&row.key).map(|id| Name::Own(*id)) != Some(*name) {
            faults.push(format!("{name:?} has lost its key {:?}", row.key));
        }
    }
}

/// The numbers of a participant are 1, 2, 3 and so on, up to the next one.
fn sequences(state: &State, faults: &mut Vec<String>) {
    let rows = state
        .rows
        .iter()
        .filter(|(_, row)| row.lane.1 != DLQ)
        .map(|(_, row)| (&row.lane.0, row.sequence));
    let tries = state.ledger.values().chain(state.archive.values()).flatten();
    let tries =
        tries.filter(|entry| entry.lane.1 != DLQ).map(|entry| (&entry.lane.0, entry.sequence));
    let used: BTreeSet<_> = rows.chain(tries).collect();
    for (participant, next) in &state.next {
        let numbers: Vec<i64> =
            used.iter().filter(|(p, _)| *p == participant).map(|(_, n)| *n).collect();
        if !numbers.iter().copied().eq(1..*next) {
            faults.push(format!(
                "the next number of {participant} is {next}, its rows have {numbers:?}"
            ));
        }
    }
}
