//! Operators: pause, resume, skip, replay, dismiss.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::case::{Case, Checked, agree};
use super::model::Locks;
use super::outcomes;
use super::state::{DLQ, Failure, Lane, LaneId, Name, Row, State, Stop};

const PAUSE: &str = "SELECT NULL::uuid FROM outbox.pause_outbox_lane($1, $2, 'op', 'a test')";
const RESUME: &str = "SELECT NULL::uuid FROM outbox.resume_outbox_lane($1, $2, 'op', 'a test')";
const SKIP: &str = "SELECT outbox.skip_outbox_lane_head($1, $2, 'op', 'a test')";
const REPLAY: &str =
    "SELECT outbox_id, sequence_id FROM outbox.replay_failed_outbox($1, 'op', 'a test')";
const DISMISS: &str = "SELECT NULL::uuid FROM outbox.dismiss_failed_outbox($1, 'op', 'a test')";

/// The lane proper.
fn main_lane(lane: &Lane) -> LaneId {
    (lane.0.clone(), lane.1.clone(), 0)
}

/// The lane proper and those that single rows have.
fn all_lanes(state: &State, lane: &Lane) -> BTreeSet<LaneId> {
    let ids = state.rows.values().filter(|row| row.lane == *lane).map(Row::lane_id);
    ids.chain([main_lane(lane)]).collect()
}

impl Case<'_> {
    fn act_waits(&self, session: usize, lane: &Lane) -> bool {
        let id = main_lane(lane);
        !self.model.takes(session, false)
            || self.model.lane_may_be_locked(session, &id)
            || self.model.lane_may_be_new(session, &id)
    }

    fn locks(lane: &Lane) -> Locks {
        let mut locks = Locks::default();
        locks.lanes.insert(main_lane(lane));
        locks.admitted.insert(main_lane(lane));
        locks
    }

    /// One answer, or the SQLSTATE, which must be one of those expected.
    async fn act(
        &mut self,
        session: usize,
        sql: &'static str,
        lane: &Lane,
        refusals: &[&str],
    ) -> Result<Option<Option<Uuid>>, String> {
        let answer = self.bench.sessions[session].query(sql, &[&lane.0, &lane.1]).await;
        match answer {
            Ok(rows) if refusals.is_empty() => Ok(Some(rows[0].get(0))),
            Ok(_) => Err(format!("{sql} of {lane:?} was accepted, not refused with {refusals:?}")),
            Err((code, _)) if refusals.contains(&code.as_str()) => {
                self.refused(session).await;
                Ok(None)
            }
            Err(error) => Err(format!("{sql} of {lane:?}: expected {refusals:?}, found {error:?}")),
        }
    }

    pub(super) async fn pause(&mut self, session: usize, lane: &Lane) -> Checked {
        if self.act_waits(session, lane) {
            return Ok(());
        }
        let mut after = self.model.view(session);
        let stop = after.stop(&main_lane(lane));
        let refusals: &[&str] = if stop.paused { &["P7009"] } else { &[] };
        if self.act(session, PAUSE, lane, refusals).await?.is_some() {
            after.set_stop(&main_lane(lane), Stop { paused: true, ..stop });
            self.accepted(session, after, Self::locks(lane));
            self.note("paused", 1);
        }
        Ok(())
    }

    /// With the lanes that rows have alone on a rail without order.
    pub(super) async fn resume(&mut self, session: usize, lane: &Lane) -> Checked {
        let mut after = self.model.view(session);
        let all = all_lanes(&after, lane);
        if self.act_waits(session, lane)
            || all.iter().any(|id| self.model.lane_may_be_locked(session, id))
        {
            return Ok(());
        }
        let known =
            all.iter().any(|id| !after.lane(id).is_empty() || after.stop(id).halted_by.is_some());
        // An empty lane may have been retired or not.
        let refusals: &[&str] = match (all.iter().any(|id| after.stop(id).paused), known) {
            (true, _) => &[],
            (false, true) => &["P7009"],
            (false, false) => &["P7008", "P7009"],
        };
        if self.act(session, RESUME, lane, refusals).await?.is_some() {
            for id in &all {
                let stop = after.stop(id);
                after.set_stop(id, Stop { paused: false, ..stop });
            }
            self.accepted(session, after, Locks { lanes: all, ..Self::locks(lane) });
            self.note("resumed", 1);
        }
        Ok(())
    }

    pub(super) async fn skip(&mut self, session: usize, lane: &Lane) -> Checked {
        let letters = (lane.0.clone(), DLQ.to_owned(), 0);
        if self.act_waits(session, lane) || self.model.admission_may_wait(session, &letters) {
            return Ok(());
        }
        let mut after = self.model.view(session);
        let stop = after.stop(&main_lane(lane));
        let rows = after.lane(&main_lane(lane));
        let head = rows.first().map(|(name, _)| *name);
        let refusals: &[&str] = match (stop.halted_by, head) {
            (Some(_), _) => &[],
            (None, None) => &["P7008", "P7104"],
            _ if lane.1 == DLQ => &["P7104"],
            _ if rows.iter().any(|(_, row)| row.lease.is_some()) => &["P7007"],
            _ => &[],
        };
        let Some(skipped) = self.act(session, SKIP, lane, refusals).await? else { return Ok(()) };
        let expected = match (stop.halted_by, head) {
            (None, Some(Name::Own(id))) => {
                outcomes::skip(&mut after, self.model.now, Name::Own(id), "operator:op");
                self.failed.push(id);
                Some(id)
            }
            (halted_by, _) => {
                after.set_stop(&main_lane(lane), Stop { halted_by: None, ..stop });
                halted_by
            }
        };
        agree("the skipped row", &expected, &skipped)?;
        self.note("skipped", 1);
        let mut locks = Self::locks(lane);
        locks.admitted.insert(letters);
        self.accepted(session, after, locks);
        Ok(())
    }

    /// A failure that can be resolved, or the SQLSTATE that says why not.
    fn open_failure(&self, session: usize, id: Uuid) -> Result<Failure, &'static str> {
        match self.model.view(session).failures.get(&id) {
            None => Err("P7010"),
            Some(failure) if failure.resolution.is_some() => Err("P7011"),
            Some(failure) => Ok(failure.clone()),
        }
    }

    fn resolution_waits(&self, session: usize, id: Uuid) -> bool {
        let view = self.model.view(session);
        let lane = view.failures.get(&id).map(|failure| failure.lane.clone());
        let waits = |lane: &Lane| {
            self.act_waits(session, lane)
                || self.model.admission_may_wait(session, &main_lane(lane))
        };
        !self.model.takes(session, false)
            || self.model.failure_is_locked(session, &id)
            || lane.as_ref().is_some_and(waits)
    }

    pub(super) async fn replay(&mut self, session: usize, id: Uuid) -> Checked {
        let failure = self.open_failure(session, id);
        let halts = |failure: &Failure| {
            self.model.state.stop(&main_lane(&failure.lane)).halted_by == Some(id)
        };
        let bumps = failure.as_ref().is_ok_and(|failure| {
            !halts(failure) && self.model.participant_is_locked(session, &failure.lane.0)
        });
        if bumps || self.resolution_waits(session, id) {
            return Ok(());
        }
        let answer = self.bench.sessions[session].query(REPLAY, &[&id]).await;
        let failure = match (failure, answer) {
            (Ok(failure), Ok(rows)) => (failure, rows),
            (failure, answer) => {
                return self.refused_as(session, failure.err(), answer.err()).await;
            }
        };
        let (failure, rows) = failure;
        self.replayed(session, id, &failure, (rows[0].get(0), rows[0].get(1)))
    }

    fn replayed(
        &mut self,
        session: usize,
        id: Uuid,
        failure: &Failure,
        found: (Uuid, i64),
    ) -> Checked {
        let mut after = self.model.view(session);
        let mut locks = Self::locks(&failure.lane);
        locks.failures.insert(id);
        let stop = after.stop(&main_lane(&failure.lane));
        let sequence = if stop.halted_by == Some(id) {
            self.note("replayed in a halted lane", 1);
            after.set_stop(&main_lane(&failure.lane), Stop { halted_by: None, ..stop });
            failure.sequence
        } else {
            self.note("replayed elsewhere", 1);
            locks.participants.insert(failure.lane.0.clone());
            let next = after.next.get_mut(&failure.lane.0).expect("it has numbers");
            *next += 1;
            *next - 1
        };
        agree("the number of a replay", &sequence, &found.1)?;
        let (request, _) = self.made[&id].clone();
        let row = Row { replay_of: Some(id), solo: false, ..request.row(sequence, self.model.now) };
        self.made.insert(found.0, (request, sequence));
        after.rows.insert(Name::Own(found.0), row);
        let resolved = after.failures.get_mut(&id).expect("a failure");
        resolved.resolution = Some("REPLAYED".into());
        resolved.replay = Some(found.0);
        self.accepted(session, after, locks);
        Ok(())
    }

    pub(super) async fn dismiss(&mut self, session: usize, id: Uuid) -> Checked {
        if self.resolution_waits(session, id) {
            return Ok(());
        }
        let failure = self.open_failure(session, id);
        let answer = self.bench.sessions[session].query(DISMISS, &[&id]).await;
        let failure = match (failure, answer) {
            (Ok(failure), Ok(_)) => failure,
            (failure, answer) => {
                return self.refused_as(session, failure.err(), answer.err()).await;
            }
        };
        let mut after = self.model.view(session);
        let mut locks = Self::locks(&failure.lane);
        locks.failures.insert(id);
        let stop = after.stop(&main_lane(&failure.lane));
        if stop.halted_by == Some(id) {
            after.set_stop(&main_lane(&failure.lane), Stop { halted_by: None, ..stop });
        }
        after.failures.get_mut(&id).expect("a failure").resolution = Some("DISMISSED".into());
        self.note("dismissed", 1);
        self.accepted(session, after, locks);
        Ok(())
    }

    async fn refused_as(
        &mut self,
        session: usize,
        expected: Option<&str>,
        found: Option<(String, String)>,
    ) -> Checked {
        self.refused(session).await;
        agree(
            "what an operator was told",
            &expected.map(str::to_owned),
            &found.map(|(code, _)| code),
        )
    }
}
