//! What completing, releasing and renewing must do, by the book.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;

use super::state::{DLQ, Entry, FREE, Failure, HALT, LaneId, Name, Row, State, Stop};
use super::steps::Outcome;

/// The 20th counted retry is the last.
const RETRIES: usize = 19;

/// What a worker says about a row.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) name: Name,
    pub(super) id: Uuid,
    pub(super) token: Uuid,
    pub(super) outcome: Outcome,
}

/// Attempt number and state, or the SQLSTATE of the refusal.
pub(super) type Told = Result<(i32, String), String>;

pub(super) struct Judged {
    pub(super) told: Vec<Told>,
    pub(super) after: State,
    pub(super) failed: Vec<Name>,
}

/// The lanes in which a worker holds any of these rows.
pub(super) fn lanes_held(state: &State, worker: &str, names: &[Name]) -> BTreeSet<LaneId> {
    let rows = names.iter().filter_map(|name| state.rows.get(name));
    let held = rows.filter(|row| row.lease.as_ref().is_some_and(|lease| lease.worker == worker));
    held.map(Row::lane_id).collect()
}

pub(super) fn judge(state: &State, now: i64, worker: &str, asked: &[Asked]) -> Judged {
    let mut judged = Judged { told: Vec::new(), after: state.clone(), failed: Vec::new() };
    let names: Vec<Name> = asked.iter().map(|asked| asked.name).collect();
    let mut told: BTreeMap<(Name, Uuid), Told> = BTreeMap::new();
    for lane in lanes_held(state, worker, &names) {
        judge_lane(state, now, worker, &lane, asked, &mut judged, &mut told);
    }
    let mut seen = BTreeSet::new();
    for ask in asked {
        // A lease that is named twice gets its first outcome.
        let first = seen.insert((ask.name, ask.token));
        judged.told.push(match told.get(&(ask.name, ask.token)) {
            Some(told) if first => told.clone(),
            _ if ask.outcome.state == "ZOMBIE_REQUEUE" => Err("P7003".into()),
            _ if state.is_terminal(ask.name) => Err("P7001".into()),
            _ => Err("P7002".into()),
        });
    }
    judged
}

/// Outcomes are a prefix of the lane; behind a retry, or a failure that halts, all is given back.
fn judge_lane(
    state: &State,
    now: i64,
    worker: &str,
    lane: &LaneId,
    asked: &[Asked],
    judged: &mut Judged,
    told: &mut BTreeMap<(Name, Uuid), Told>,
) {
    let ordered = lane.1 != FREE;
    let (mut next, mut stopped) = (true, false);
    for (name, row) in state.lane(lane) {
        let Some(lease) = &row.lease else { continue };
        if stopped && ordered {
            give_back(judged.after.rows.get_mut(&name).expect("a row"));
            continue;
        }
        let ask = asked.iter().find(|ask| ask.name == name && ask.token == lease.token);
        let held = ask.filter(|ask| {
            lease.worker == worker
                && lease.expires_at > now
                && ask.outcome.state != "ZOMBIE_REQUEUE"
        });
        let Some(ask) = held else {
            next = false;
            continue;
        };
        if next || !ordered {
            let state = record(state, now, name, row, &ask.outcome, judged);
            stopped = ask.outcome.state == "RETRYABLE"
                || state == "RETRYABLE"
                || (state == "FAILED" && lane.1 == HALT);
            told.insert(
                (name, ask.token),
                Ok((judged.after.attempts(name).last().expect("recorded").number, state)),
            );
        } else {
            told.insert((name, ask.token), Err("P7006".into()));
        }
    }
}

fn give_back(row: &mut Row) {
    row.lease = None;
}

/// Exponential, from a second to a quarter of an hour.
fn backoff_ms(number: i32) -> i64 {
    (1_i64 << (number - 1).min(10)).min(900) * 1000
}

fn record(
    state: &State,
    now: i64,
    name: Name,
    row: &Row,
    outcome: &Outcome,
    judged: &mut Judged,
) -> String {
    let (tries, letter) = (state.attempts(name), row.lane.1 == DLQ);
    let counted = outcome.counted.unwrap_or(true);
    let retries = tries.iter().filter(|entry| entry.state == "RETRYABLE" && entry.counted).count();
    let (recorded, error) = match outcome.state {
        "FAILED" if letter => ("RETRYABLE", None),
        "RETRYABLE" if !letter && counted && retries >= RETRIES => {
            ("FAILED", Some("RETRIES_EXHAUSTED"))
        }
        state => (state, None),
    };
    let number = tries.len() as i32 + 1;
    let lease = row.lease.clone().expect("it is held");
    let entry = entry(row, number, recorded, counted, &lease.worker, Some(lease.token), error);
    finish(&mut judged.after, now, name, entry);
    if recorded == "FAILED" {
        judged.failed.push(name);
    } else if recorded == "RETRYABLE" {
        let delay =
            outcome.delay_seconds.map_or(backoff_ms(number), |seconds| i64::from(seconds) * 1000);
        let unordered = row.lane.1 == FREE;
        let again = Row {
            lease: None,
            attempts: row.attempts.max(number),
            next_at: now + delay,
            solo: row.solo || unordered,
            ..row.clone()
        };
        judged.after.rows.insert(name, again);
    }
    recorded.into()
}

pub(super) fn entry(
    row: &Row,
    number: i32,
    state: &str,
    counted: bool,
    worker: &str,
    token: Option<Uuid>,
    error: Option<&str>,
) -> Entry {
    Entry {
        number,
        state: state.into(),
        counted,
        worker: worker.into(),
        token,
        error: error.map(str::to_owned),
        lane: row.lane.clone(),
        sequence: row.sequence,
        replay_of: row.replay_of,
    }
}

/// Enters an outcome; the row leaves, and a FAILED one is buried.
fn finish(state: &mut State, now: i64, name: Name, entry: Entry) {
    let row = state.rows.remove(&name).expect("a pending row");
    state.ledger.entry(name).or_default().push(entry.clone());
    let (Name::Own(id), "FAILED") = (name, entry.state.as_str()) else { return };
    let failure =
        Failure { lane: row.lane.clone(), sequence: row.sequence, resolution: None, replay: None };
    state.failures.insert(id, failure);
    let lane = (row.lane.0.clone(), DLQ.to_owned());
    if row.lane.1 == HALT {
        let stop = Stop { halted_by: Some(id), ..state.stop(&row.lane_id()) };
        state.set_stop(&row.lane_id(), stop);
        // This rail has no DLQ topic: its dead letters are done at once.
        let done = Entry {
            number: 1,
            state: "DISPATCHED".into(),
            counted: true,
            error: None,
            lane,
            replay_of: None,
            ..entry
        };
        state.ledger.insert(Name::LetterOf(id), vec![done]);
        return;
    }
    let letter =
        Row { lane, attempts: 0, next_at: now, lease: None, solo: false, replay_of: None, ..row };
    state.rows.insert(Name::LetterOf(id), letter);
}

/// An operator takes the head of a lane out; the lane does not halt for it.
pub(super) fn skip(state: &mut State, now: i64, name: Name, worker: &str) {
    let row = state.rows[&name].clone();
    let number = state.attempts(name).len() as i32 + 1;
    let entry = entry(&row, number, "FAILED", true, worker, None, Some("SKIPPED_BY_OPERATOR"));
    finish(state, now, name, entry);
    let stop = Stop { halted_by: None, ..state.stop(&row.lane_id()) };
    state.set_stop(&row.lane_id(), stop);
}
