//! What the database holds about the participants of one case. The model predicts it, the server
//! is asked for it, and the two must be equal.

use std::collections::BTreeMap;

use uuid::Uuid;

pub(super) const STRICT: &str = "strict";
pub(super) const HALT: &str = "halting";
pub(super) const FREE: &str = "free";
pub(super) const DLQ: &str = "dlq";

/// A row by its own id or, because the server names dead letters by itself, by the row it buries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Own(Uuid),
    LetterOf(Uuid),
}

/// Participant and rail.
pub(super) type Lane = (String, String);

/// A lane as it is locked: on a rail without order a row that waits has one of its own, known by
/// its number; 0 is the lane proper.
pub(super) type LaneId = (String, String, i64);

/// Instruction and idempotency key.
pub(super) type Key = (String, String);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    pub(super) worker: String,
    pub(super) token: Uuid,
    pub(super) expires_at: i64,
}

/// Where a row stands in its lane. Only the server knows it of a dead letter, so the model learns it
/// and any two are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Position(pub(super) i64);

impl PartialEq for Position {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Position {}

/// A pending row; times are milliseconds since the clock of the database was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) lane: Lane,
    pub(super) sequence: i64,
    pub(super) position: Position,
    pub(super) key: Key,
    pub(super) payload: String,
    pub(super) attempts: i32,
    pub(super) next_at: i64,
    pub(super) lease: Option<Lease>,
    pub(super) solo: bool,
    pub(super) replay_of: Option<Uuid>,
}

impl Row {
    pub(super) fn lane_id(&self) -> LaneId {
        let (participant, rail) = self.lane.clone();
        (participant, rail, if self.solo { self.sequence } else { 0 })
    }
}

/// One line of the ledger. The token of an operator's own act is not known to anybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) number: i32,
    pub(super) state: String,
    pub(super) counted: bool,
    pub(super) worker: String,
    pub(super) token: Option<Uuid>,
    pub(super) error: Option<String>,
    pub(super) lane: Lane,
    pub(super) sequence: i64,
    pub(super) replay_of: Option<Uuid>,
}

impl Entry {
    pub(super) fn is_terminal(&self) -> bool {
        self.state == "DISPATCHED" || self.state == "FAILED"
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) lane: Lane,
    pub(super) sequence: i64,
    pub(super) resolution: Option<String>,
    pub(super) replay: Option<Uuid>,
}

/// Why a lane does not go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) paused: bool,
    pub(super) halted_by: Option<Uuid>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) rows: BTreeMap<Name, Row>,
    pub(super) ledger: BTreeMap<Name, Vec<Entry>>,
    pub(super) archive: BTreeMap<Name, Vec<Entry>>,
    pub(super) failures: BTreeMap<Uuid, Failure>,
    pub(super) stops: BTreeMap<LaneId, Stop>,
    pub(super) next: BTreeMap<String, i64>,
    pub(super) keys: BTreeMap<Key, Uuid>,
}

impl State {
    /// The rows of a lane, in its order.
    pub(super) fn lane(&self, lane: &LaneId) -> Vec<(Name, &Row)> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .filter(|(_, row)| row.lane_id() == *lane)
            .map(|(n, r)| (*n, r))
            .collect();
        rows.sort_by_key(|(_, row)| row.position.0);
        rows
    }

    /// Whether nothing of a lane may be claimed: one that a row has alone stops with the lane proper.
    pub(super) fn is_stopped(&self, lane: &LaneId) -> bool {
        let (own, all) = (self.stop(lane), self.stop(&(lane.0.clone(), lane.1.clone(), 0)));
        own.paused || own.halted_by.is_some() || all.paused
    }

    pub(super) fn stop(&self, lane: &LaneId) -> Stop {
        self.stops.get(lane).cloned().unwrap_or_default()
    }

    pub(super) fn set_stop(&mut self, lane: &LaneId, stop: Stop) {
        if stop == Stop::default() {
            self.stops.remove(lane);
        } else {
            self.stops.insert(lane.clone(), stop);
        }
    }

    /// The positions that the server gave.
    pub(super) fn learn(&mut self, real: &Self) {
        for (name, row) in &mut self.rows {
            row.position = real.rows.get(name).map_or(row.position, |real| real.position);
        }
    }

    pub(super) fn attempts(&self, name: Name) -> &[Entry] {
        self.ledger.get(&name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn is_terminal(&self, name: Name) -> bool {
        self.attempts(name).iter().any(Entry::is_terminal)
    }

    /// What differs, one line each.
    pub(super) fn differences(&self, real: &Self) -> Vec<String> {
        let mut lines = Vec::new();
        compare("row", &self.rows, &real.rows, &mut lines);
        compare("ledger", &self.ledger, &real.ledger, &mut lines);
        compare("archive", &self.archive, &real.archive, &mut lines);
        compare("failure", &self.failures, &real.failures, &mut lines);
        compare("stop", &self.stops, &real.stops, &mut lines);
        compare("next number", &self.next, &real.next, &mut lines);
        compare("key", &self.keys, &real.keys, &mut lines);
        lines
    }
}

fn compare<K, V>(what: &str, model: &BTreeMap<K, V>, real: &BTreeMap<K, V>, lines: &mut Vec<String>)
where
    K: Ord + std::fmt::Debug,
    V: PartialEq + std::fmt::Debug,
{
    for key in model.keys().chain(real.keys().filter(|key| !model.contains_key(key))) {
        if model.get(key) != real.get(key) {
            let (model, real) = (model.get(key), real.get(key));
            lines.push(format!("{what} {key:?}\n    expected {model:?}\n    found    {real:?}"));
        }
    }
}

/// What a transaction changed: applied to the common state when it commits.
#[derive(Clone, Default)]
pub(super) struct Patch {
    rows: BTreeMap<Name, Option<Row>>,
    ledger: BTreeMap<Name, Option<Vec<Entry>>>,
    archive: BTreeMap<Name, Option<Vec<Entry>>>,
    failures: BTreeMap<Uuid, Option<Failure>>,
    stops: BTreeMap<LaneId, Option<Stop>>,
    next: BTreeMap<String, Option<i64>>,
    keys: BTreeMap<Key, Option<Uuid>>,
}

impl Patch {
    pub(super) fn between(before: &State, after: &State) -> Self {
        Self {
            rows: changed(&before.rows, &after.rows),
            ledger: changed(&before.ledger, &after.ledger),
            archive: changed(&before.archive, &after.archive),
            failures: changed(&before.failures, &after.failures),
            stops: changed(&before.stops, &after.stops),
            next: changed(&before.next, &after.next),
            keys: changed(&before.keys, &after.keys),
        }
    }

    pub(super) fn apply(&self, state: &mut State) {
        put(&mut state.rows, &self.rows);
        put(&mut state.ledger, &self.ledger);
        put(&mut state.archive, &self.archive);
        put(&mut state.failures, &self.failures);
        put(&mut state.stops, &self.stops);
        put(&mut state.next, &self.next);
        put(&mut state.keys, &self.keys);
    }
}

fn changed<K: Ord + Clone, V: PartialEq + Clone>(
    before: &BTreeMap<K, V>,
    after: &BTreeMap<K, V>,
) -> BTreeMap<K, Option<V>> {
    let keys = before.keys().chain(after.keys());
    keys.filter(|key| before.get(key) != after.get(key))
        .map(|key| (key.clone(), after.get(key).cloned()))
        .collect()
}

fn put<K: Ord + Clone, V: Clone>(state: &mut BTreeMap<K, V>, patch: &BTreeMap<K, Option<V>>) {
    for (key, value) in patch {
        match value {
            Some(value) => state.insert(key.clone(), value.clone()),
            None => state.remove(key),
        };
    }
}
