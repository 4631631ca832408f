//! One case: its steps are taken one by one, on the server and in the model, and compared.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uuid::Uuid;

use super::bench::Bench;
use super::enqueueing::Request;
use super::laws;
use super::model::{Locks, Model};
use super::outcomes::Asked;
use super::snapshot::{self, Snapshot};
use super::state::{DLQ, FREE, HALT, Lane, LaneId, Name, Row, STRICT, State};
use super::steps::{Outcome, PARTICIPANTS, Picks, Place, SESSIONS, Step, WORKERS};

/// What went wrong.
pub(super) type Violation = String;
pub(super) type Checked = Result<(), Violation>;

pub(super) const RAILS: [&str; 4] = [STRICT, HALT, FREE, DLQ];
const INSTRUCTIONS: usize = 4;

/// A row that some worker was given.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: Name,
    pub(super) id: Uuid,
    pub(super) token: Uuid,
    pub(super) worker: String,
}

pub(super) struct Case<'a> {
    pub(super) bench: &'a mut Bench,
    pub(super) model: Model,
    pub(super) seen: Snapshot,
    pub(super) participants: Vec<String>,
    pub(super) instructions: Vec<String>,
    /// Every request that was ever made, and what each id was made for.
    pub(super) requests: Vec<Request>,
    pub(super) made: HashMap<Uuid, (Request, i64)>,
    pub(super) given: Vec<Given>,
    pub(super) failed: Vec<Uuid>,
    pub(super) tally: Tally,
}

/// How often something happened, so that a run can show that it was about something.
pub(super) type Tally = BTreeMap<&'static str, u64>;

impl<'a> Case<'a> {
    /// `tag` keeps the participants of this case apart from those of all others.
    pub(super) fn new(bench: &'a mut Bench, tag: &str) -> Self {
        let name = |kind: &str, n: usize| format!("{tag}-{kind}{n}");
        let model = Model::at(bench.now);
        Self {
            bench,
            model,
            seen: Snapshot::default(),
            participants: (0..PARTICIPANTS).map(|n| name("p", n)).collect(),
            instructions: (0..INSTRUCTIONS).map(|n| name("i", n)).collect(),
            requests: Vec::new(),
            made: HashMap::new(),
            given: Vec::new(),
            failed: Vec::new(),
            tally: Tally::new(),
        }
    }

    pub(super) fn note(&mut self, what: &'static str, times: usize) {
        *self.tally.entry(what).or_default() += times as u64;
    }

    /// Takes a step; one that would wait for another transaction is left out.
    pub(super) async fn take(&mut self, step: &Step) -> Checked {
        let mut step = step.clone();
        self.find_session(&mut step);
        match &step {
            Step::Begin { session } => self.begin(*session).await,
            Step::End { session, commit } => self.end(*session, *commit).await,
            Step::Enqueue { session, rows, batch, report_errors } => {
                let requests = rows.iter().map(|row| self.request(row)).collect::<Vec<_>>();
                self.enqueue(*session, &requests, *batch, *report_errors).await?;
            }
            Step::Claim { session, worker, size, lane_rows, rail, lease_seconds } => {
                let rail = rail.map(|rail| RAILS[rail]);
                self.claim(
                    *session,
                    &worker_name(*worker),
                    *size,
                    *lane_rows,
                    rail,
                    *lease_seconds,
                )
                .await?;
            }
            Step::Complete { session, picks, outcomes, single } => {
                let (worker, asked) = self.pick(*session, picks, outcomes);
                self.complete(*session, &worker, &asked, *single).await?;
            }
            Step::Release { session, picks, delay_seconds } => {
                let (worker, asked) = self.pick(*session, picks, &[NO_OUTCOME]);
                self.release(*session, &worker, &asked, *delay_seconds).await?;
            }
            Step::Renew { session, picks, lease_seconds } => {
                let (worker, asked) = self.pick(*session, picks, &[NO_OUTCOME]);
                self.renew(*session, &worker, &asked, *lease_seconds).await?;
            }
            Step::Advance { seconds } => self.advance(seconds * 1000).await,
            _ => self.take_other(&step).await?,
        }
        self.check().await
    }

    /// A session that is in the middle of something else leaves the step to another.
    fn find_session(&self, step: &mut Step) {
        let produces = matches!(step, Step::Enqueue { .. });
        if matches!(step, Step::Begin { .. } | Step::End { .. }) {
            return;
        }
        let Some(wanted) = step.session() else { return };
        let all = (0..SESSIONS).map(|n| (*wanted + n) % SESSIONS);
        if let Some(free) = all.into_iter().find(|session| self.model.takes(*session, produces)) {
            *wanted = free;
        }
    }

    async fn take_other(&mut self, step: &Step) -> Checked {
        match step {
            Step::Repair { session, worker, lanes } => {
                self.repair(*session, &worker_name(*worker), *lanes).await
            }
            Step::Pause { session, place } => {
                let idle = |lane: &LaneId, state: &State| !state.is_stopped(lane);
                self.pause(*session, &self.place(place, idle)).await
            }
            Step::Resume { session, place } => {
                let paused = |lane: &LaneId, state: &State| state.is_stopped(lane);
                self.resume(*session, &self.place(place, paused)).await
            }
            Step::Skip { session, place } => {
                let idle = |lane: &LaneId, state: &State| {
                    state.lane(lane).iter().all(|(_, row)| row.lease.is_none() && row.lane.1 != DLQ)
                };
                self.skip(*session, &self.place(place, idle)).await
            }
            Step::Replay { session, failure } => {
                self.replay(*session, self.failure(*failure)).await
            }
            Step::Dismiss { session, failure } => {
                self.dismiss(*session, self.failure(*failure)).await
            }
            Step::Age => self.age().await,
            Step::Upkeep { session } => self.upkeep(*session).await.map(drop),
            _ => unreachable!("{step:?} has been taken"),
        }
    }

    /// One of the lanes that are as wanted, or any.
    fn place(&self, place: &Place, wanted: impl Fn(&LaneId, &State) -> bool) -> Lane {
        let state = &self.model.state;
        let lanes: BTreeSet<LaneId> =
            state.rows.values().map(Row::lane_id).chain(state.stops.keys().cloned()).collect();
        let lane = lanes.iter().filter(|lane| wanted(lane, state)).nth(place.nth / 2);
        lane.map_or_else(
            || (self.participants[place.participant].clone(), RAILS[place.rail].to_owned()),
            |lane| (lane.0.clone(), lane.1.clone()),
        )
    }

    /// One of the failures that are open or, beyond them, one that was resolved or never was.
    fn failure(&self, nth: usize) -> Uuid {
        let resolved = |id: &&Uuid| {
            self.model.state.failures.get(*id).is_none_or(|failure| failure.resolution.is_some())
        };
        let (resolved, open): (Vec<&Uuid>, Vec<&Uuid>) = self.failed.iter().partition(resolved);
        let all: Vec<&Uuid> = open.into_iter().chain(resolved).collect();
        all.get(nth / 2).map_or(Uuid::nil(), |id| **id)
    }

    async fn begin(&mut self, session: usize) {
        if self.model.open(session).is_none() {
            self.bench.sessions[session].run("BEGIN").await;
            self.model.begin(session);
        }
    }

    pub(super) async fn end(&mut self, session: usize, commit: bool) {
        if self.model.open(session).is_some() {
            self.bench.sessions[session].run(if commit { "COMMIT" } else { "ROLLBACK" }).await;
            self.model.end(session, commit);
        }
    }

    pub(super) async fn advance(&mut self, ms: i64) {
        self.bench.advance(ms).await;
        self.model.now = self.bench.now;
    }

    /// A call was refused as the model said: its transaction is over.
    pub(super) async fn refused(&mut self, session: usize) {
        self.end(session, false).await;
    }

    pub(super) fn accepted(&mut self, session: usize, after: State, locks: Locks) {
        self.model.changed(session, after, locks, false);
    }

    /// Which rows a worker speaks about, and what it says.
    fn pick(
        &mut self,
        session: usize,
        picks: &Picks,
        outcomes: &[Outcome],
    ) -> (String, Vec<Asked>) {
        // Whoever has something to say.
        let silent = self.held(session, &worker_name(picks.worker)).is_empty();
        let speaker = if silent { picks.worker + 1 } else { picks.worker };
        let worker = worker_name(speaker);
        let mut rows =
            if picks.stale { self.ever_given(&worker) } else { self.held(session, &worker) };
        if !rows.is_empty() {
            let from = picks.from % rows.len();
            rows.rotate_left(from);
            rows.truncate(picks.count);
        }
        if picks.reversed {
            rows.reverse();
        }
        let wrong = picks.wrong_token.filter(|_| !rows.is_empty()).map(|at| at % rows.len());
        let ask = |(at, row): (usize, Given)| Asked {
            name: row.name,
            id: row.id,
            token: if wrong == Some(at) { Uuid::new_v4() } else { row.token },
            outcome: outcomes[at % outcomes.len()],
        };
        let asked = rows.into_iter().enumerate().map(ask).collect();
        (worker_name(if picks.impostor { speaker + 1 } else { speaker }), asked)
    }

    fn ever_given(&self, worker: &str) -> Vec<Given> {
        self.given.iter().rev().filter(|given| given.worker == worker).cloned().collect()
    }

    /// In the order of their lanes.
    pub(super) fn held(&self, session: usize, worker: &str) -> Vec<Given> {
        let view = self.model.view(session);
        let mut held = BTreeMap::new();
        for given in self.given.iter().filter(|given| given.worker == worker) {
            let Some(row) = view.rows.get(&given.name) else { continue };
            if row.lease.as_ref().is_some_and(|lease| lease.token == given.token) {
                held.insert((row.lane_id(), row.position.0, given.name), given.clone());
            }
        }
        held.into_values().collect()
    }

    /// The server and the model agree, and no law is broken.
    pub(super) async fn check(&mut self) -> Checked {
        let seen = snapshot::take(
            &self.bench.observer,
            &self.bench.snapshot,
            &self.participants,
            &self.instructions,
        )
        .await;
        let mut faults = self.model.state.differences(&seen.state);
        let now = laws::Moment { snapshot: &seen, at: self.model.now };
        faults.extend(laws::broken(now, &self.seen.state));
        self.model.state.learn(&seen.state);
        self.seen = seen;
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n  ")) }
    }
}

pub(super) const NO_OUTCOME: Outcome =
    Outcome { state: "DISPATCHED", delay_seconds: None, counted: None };

pub(super) fn worker_name(worker: usize) -> String {
    format!("worker-{}", worker % WORKERS)
}

/// The two must be the same.
pub(super) fn agree<T: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: &T,
    found: &T,
) -> Checked {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}\n    expected {expected:?}\n    found    {found:?}"))
}
