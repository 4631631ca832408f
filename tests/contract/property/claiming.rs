//! Workers look for work: claim and repair.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row as Answer;
use uuid::Uuid;

use super::case::{Case, Checked, Given, agree};
use super::leases;
use super::model::Locks;
use super::state::{FREE, LaneId, Lease, Name, Row, State};

const CLAIM: &str = "SELECT outbox_id, dead_letter_of, lease_token, attempt_count \
    FROM outbox.claim_outbox_batch($1, $2, $3, p_rail_types => $4, p_lane_rows => $5)";
/// For so long an expired lease is left to those who repair on purpose.
const REPAIRED_WITHIN_MS: i64 = 3_000;
const REPAIR: &str = "SELECT outbox_id FROM outbox.repair_expired_leases($1, $2)";

/// What a claim asked for.
struct Claim<'a> {
    worker: &'a str,
    size: usize,
    lane_rows: Option<i32>,
    rail: Option<&'a str>,
}

impl Case<'_> {
    pub(super) async fn claim(
        &mut self,
        session: usize,
        worker: &str,
        size: i32,
        lane_rows: Option<i32>,
        rail: Option<&str>,
        lease_seconds: i32,
    ) -> Checked {
        if !self.model.takes_look(session) {
            return Ok(());
        }
        let rails = rail.map(|rail| vec![rail]);
        let found = self.bench.sessions[session]
            .query(CLAIM, &[&size, &worker, &lease_seconds, &rails, &lane_rows])
            .await;
        let rows = found.map_err(|error| format!("a claim was refused: {error:?}"))?;
        let mut after = self.model.view(session);
        // Whoever finds a lease that nobody has repaired in time repairs all that are over, and that is a claim too.
        let late = self.model.now - REPAIRED_WITHIN_MS;
        let lease = |row: &Row| row.lease.as_ref().map(|lease| lease.expires_at);
        let any = after.rows.values().filter_map(lease).any(|expires_at| expires_at <= late);
        let mut locked = if any { self.expired(session, &after) } else { BTreeSet::new() };
        for lane in &locked {
            leases::requeue(&mut after, self.model.now, lane);
            self.note("repaired by a claim", 1);
        }
        let expires_at = self.model.now + i64::from(lease_seconds) * 1000;
        let claim = Claim { worker, size: size as usize, lane_rows, rail };
        let given = self.legal(session, &after, &claim, &rows)?;
        let leased = after.rows.values().filter(|row| row.lease.is_some()).map(Row::lane_id);
        let except = leased.filter(|lane| !locked.contains(lane)).collect();
        self.note("claimed", given.len());
        for row in given {
            let lease = Lease { worker: worker.into(), token: row.token, expires_at };
            let claimed = after.rows.get_mut(&row.name).expect("a row");
            claimed.lease = Some(lease);
            locked.insert(claimed.lane_id());
            self.given.push(row);
        }
        let locks = Locks { lanes: locked, looked_except: Some(except), ..Locks::default() };
        self.accepted(session, after, locks);
        Ok(())
    }

    /// Lanes whose lease is over and that nobody has locked.
    fn expired(&self, session: usize, state: &State) -> BTreeSet<LaneId> {
        let over =
            |row: &&Row| row.lease.as_ref().is_some_and(|lease| lease.expires_at <= self.model.now);
        let lanes = state.rows.values().filter(over).map(Row::lane_id);
        lanes.filter(|lane| !self.model.lane_is_locked(session, lane)).collect()
    }

    /// What a claim returned, if it was allowed to and did not leave out what it had to return.
    fn legal(
        &self,
        session: usize,
        state: &State,
        claim: &Claim<'_>,
        rows: &[Answer],
    ) -> Result<Vec<Given>, String> {
        let mut lanes: BTreeMap<LaneId, Vec<Name>> = BTreeMap::new();
        let mut given = Vec::new();
        for row in rows {
            let (id, buried, token, attempts): (Uuid, Option<Uuid>, Uuid, i32) =
                (row.get(0), row.get(1), row.get(2), row.get(3));
            let name = buried.map_or(Name::Own(id), Name::LetterOf);
            let pending =
                state.rows.get(&name).ok_or(format!("{name:?} was claimed, but is not pending"))?;
            agree("the attempts of a claimed row", &pending.attempts, &attempts)?;
            if self.given.iter().any(|other| other.token == token) {
                return Err(format!("{name:?} was given a token that was used before"));
            }
            lanes.entry(pending.lane_id()).or_default().push(name);
            given.push(Given { name, id, token, worker: claim.worker.into() });
        }
        for (lane, names) in &lanes {
            self.lane_was_free(session, state, claim, lane, names)?;
        }
        if rows.len() > claim.size {
            return Err(format!("a claim of {} returned {} rows", claim.size, rows.len()));
        }
        if rows.len() < claim.size {
            self.nothing_left_out(session, state, claim, &lanes)?;
        }
        Ok(given)
    }

    /// The rows are due, at the head of their lane and in order; nothing of the lane is in flight.
    fn lane_was_free(
        &self,
        session: usize,
        state: &State,
        claim: &Claim<'_>,
        id: &LaneId,
        names: &[Name],
    ) -> Checked {
        let rows = state.lane(id);
        let stopped = state.is_stopped(id);
        let free = !stopped && !self.model.lane_is_locked(session, id);
        let idle = rows.iter().all(|(_, row)| row.lease.is_none());
        let due = |name: &Name| state.rows[name].next_at <= self.model.now;
        let head: Vec<Name> = rows.iter().map(|(name, _)| *name).take(names.len()).collect();
        let ordered = id.1 == FREE || head == names;
        let wanted = claim.rail.is_none_or(|rail| rail == id.1);
        let few = claim.lane_rows.is_none_or(|most| names.len() <= most as usize);
        if free && idle && ordered && wanted && few && names.iter().all(due) {
            return Ok(());
        }
        Err(format!(
            "{names:?} were claimed, but the lane {id:?} (stopped: {stopped}) has {rows:?}"
        ))
    }

    /// A lane whose turn has come is taken, unless somebody may have it locked.
    fn nothing_left_out(
        &self,
        session: usize,
        state: &State,
        claim: &Claim<'_>,
        taken: &BTreeMap<LaneId, Vec<Name>>,
    ) -> Checked {
        for turn in self
            .seen
            .turns
            .iter()
            .filter(|turn| turn.worker.is_none() && turn.due_at <= self.model.now)
        {
            let Some(lane) = self.seen.lanes.get(&turn.lane) else { continue };
            let wanted = claim.rail.is_none_or(|rail| rail == lane.id.1);
            let rows = state.lane(&lane.id);
            let due = rows
                .first()
                .is_some_and(|(_, head)| head.next_at <= self.model.now && head.lease.is_none());
            let free =
                !state.is_stopped(&lane.id) && !self.model.lane_may_be_locked(session, &lane.id);
            if wanted && due && free && !taken.contains_key(&lane.id) {
                return Err(format!("a claim that was not full left out {lane:?}: {rows:?}"));
            }
        }
        Ok(())
    }

    pub(super) async fn repair(&mut self, session: usize, worker: &str, lanes: i32) -> Checked {
        if !self.model.takes_look(session) {
            return Ok(());
        }
        let rows = self.bench.sessions[session].query(REPAIR, &[&lanes, &worker]).await;
        let rows = rows.map_err(|error| format!("a repair was refused: {error:?}"))?;
        let found: BTreeSet<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        let mut after = self.model.view(session);
        let mut expired = self.expired(session, &after);
        let count = expired.len().min(lanes as usize);
        // Where fewer are asked for than are expired, the server chooses, but takes whole lanes.
        let owned = |lane: &LaneId| {
            after.lane(lane).iter().any(|(name, _)| found.contains(&self.id_of(*name)))
        };
        let chosen: BTreeSet<LaneId> = expired.iter().filter(|lane| owned(lane)).cloned().collect();
        agree("the number of repaired lanes", &count, &chosen.len())?;
        expired.retain(|lane| chosen.contains(lane));
        let requeued: Vec<Name> = expired
            .iter()
            .flat_map(|lane| leases::requeue(&mut after, self.model.now, lane))
            .collect();
        agree("repaired rows", &self.ids(&requeued), &found)?;
        self.note("repaired", requeued.len());
        self.accepted(session, after, Locks { lanes: expired, ..Locks::default() });
        Ok(())
    }

    fn id_of(&self, name: Name) -> Uuid {
        self.given.iter().find(|given| given.name == name).map_or(Uuid::nil(), |given| given.id)
    }
}
