//! Workers speak about their rows: complete, release and renew.

use std::collections::BTreeSet;

use tokio_postgres::Row as Answer;
use uuid::Uuid;

use super::case::{Case, Checked, agree};
use super::leases;
use super::model::Locks;
use super::outcomes::{self, Asked, Told};
use super::state::{DLQ, LaneId, Name, State};

const ONE: &str = "SELECT attempt_no, state::text, NULL::text FROM outbox.complete_outbox_attempt(\
    $1, $2, $3, $4::text::outbox.outbox_attempt_state, p_retry_delay_seconds => $5, p_counted => $6)";
const MANY: &str = "SELECT attempt_no, state::text, refusal FROM outbox.complete_outbox_batch(\
    $1, $2, $3, $4::text[]::outbox.outbox_attempt_state[], p_retry_delays_seconds => $5, p_counted => $6)";
const RELEASE: &str = "SELECT outbox_id FROM outbox.release_outbox_leases($1, $2, $3, $4)";
const RENEW: &str = "SELECT outbox_id FROM outbox.renew_outbox_leases($1, $2, $3, $4)";

impl Case<'_> {
    pub(super) async fn complete(
        &mut self,
        session: usize,
        worker: &str,
        asked: &[Asked],
        single: bool,
    ) -> Checked {
        let view = self.model.view(session);
        let Some(lanes) = self.locks_for(session, worker, asked, &view) else { return Ok(()) };
        let judged = outcomes::judge(&view, self.model.now, worker, asked);
        let mut locks = Locks { lanes, ..Locks::default() };
        for name in &judged.failed {
            let letters = (view.rows[name].lane.0.clone(), DLQ.to_owned(), 0);
            if self.model.admission_may_wait(session, &letters) {
                return Ok(());
            }
            locks.admitted.insert(letters);
        }
        let told = self.tell(session, worker, asked, single).await?;
        agree(&format!("what {worker} was told about {asked:?}"), &judged.told, &told)?;
        told.iter().for_each(|told| self.note_told(told));
        if single && told[0].is_err() {
            self.refused(session).await;
            return Ok(());
        }
        let failed = judged
            .failed
            .iter()
            .filter_map(|name| if let Name::Own(id) = name { Some(*id) } else { None });
        self.failed.extend(failed);
        self.accepted(session, judged.after, locks);
        Ok(())
    }

    fn note_told(&mut self, told: &Told) {
        const KNOWN: [&str; 7] =
            ["DISPATCHED", "RETRYABLE", "FAILED", "P7001", "P7002", "P7003", "P7006"];
        let (Ok((_, word)) | Err(word)) = told;
        let known = KNOWN.into_iter().find(|known| known == word);
        self.note(known.unwrap_or("something else"), 1);
    }

    /// The lanes that such a call locks; nothing where it would wait for them.
    fn locks_for(
        &self,
        session: usize,
        worker: &str,
        asked: &[Asked],
        view: &State,
    ) -> Option<BTreeSet<LaneId>> {
        if asked.is_empty() || !self.model.takes(session, false) {
            return None;
        }
        let names: Vec<Name> = asked.iter().map(|asked| asked.name).collect();
        let lanes = outcomes::lanes_held(view, worker, &names);
        let waits = lanes.iter().any(|lane| self.model.lane_is_locked(session, lane));
        (!waits).then_some(lanes)
    }

    async fn tell(
        &mut self,
        session: usize,
        worker: &str,
        asked: &[Asked],
        single: bool,
    ) -> Result<Vec<Told>, String> {
        let session = &mut self.bench.sessions[session];
        let ids: Vec<Uuid> = asked.iter().map(|asked| asked.id).collect();
        let tokens: Vec<Uuid> = asked.iter().map(|asked| asked.token).collect();
        let states: Vec<&str> = asked.iter().map(|asked| asked.outcome.state).collect();
        let delays: Vec<Option<i32>> =
            asked.iter().map(|asked| asked.outcome.delay_seconds).collect();
        let counted: Vec<Option<bool>> = asked.iter().map(|asked| asked.outcome.counted).collect();
        let rows = if single {
            session
                .query(ONE, &[&ids[0], &tokens[0], &worker, &states[0], &delays[0], &counted[0]])
                .await
        } else {
            session.query(MANY, &[&worker, &ids, &tokens, &states, &delays, &counted]).await
        };
        let told = |row: &Answer| match row.get::<_, Option<String>>(2) {
            None => Ok((row.get(0), row.get(1))),
            Some(refusal) => Err(refusal),
        };
        match rows {
            Ok(rows) => Ok(rows.iter().map(told).collect()),
            Err((code, _)) if single => Ok(vec![Err(code)]),
            Err(error) => Err(format!("a batch was refused: {error:?}")),
        }
    }

    pub(super) async fn release(
        &mut self,
        session: usize,
        worker: &str,
        asked: &[Asked],
        delay_seconds: i32,
    ) -> Checked {
        let mut after = self.model.view(session);
        let Some(lanes) = self.locks_for(session, worker, asked, &after) else { return Ok(()) };
        let released = leases::release(&mut after, self.model.now, worker, asked, delay_seconds);
        let found = self.speak_of(session, RELEASE, worker, asked, delay_seconds).await?;
        agree("released rows", &self.ids(&released), &found)?;
        self.note("released", released.len());
        self.accepted(session, after, Locks { lanes, ..Locks::default() });
        Ok(())
    }

    pub(super) async fn renew(
        &mut self,
        session: usize,
        worker: &str,
        asked: &[Asked],
        lease_seconds: i32,
    ) -> Checked {
        let mut after = self.model.view(session);
        let Some(lanes) = self.locks_for(session, worker, asked, &after) else { return Ok(()) };
        let renewed = leases::renew(&mut after, self.model.now, worker, asked, lease_seconds);
        let found = self.speak_of(session, RENEW, worker, asked, lease_seconds).await?;
        agree("renewed rows", &self.ids(&renewed), &found)?;
        self.note("renewed", renewed.len());
        self.accepted(session, after, Locks { lanes, ..Locks::default() });
        Ok(())
    }

    async fn speak_of(
        &mut self,
        session: usize,
        sql: &'static str,
        worker: &str,
        asked: &[Asked],
        seconds: i32,
    ) -> Result<BTreeSet<Uuid>, String> {
        let ids: Vec<Uuid> = asked.iter().map(|asked| asked.id).collect();
        let tokens: Vec<Uuid> = asked.iter().map(|asked| asked.token).collect();
        let rows =
            self.bench.sessions[session].query(sql, &[&worker, &ids, &tokens, &seconds]).await;
        let rows = rows.map_err(|error| format!("{worker} was refused: {error:?}"))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    /// The ids by which the server knows rows that were given to a worker.
    pub(super) fn ids(&self, names: &[Name]) -> BTreeSet<Uuid> {
        let id = |name: &Name| {
            self.given.iter().find(|given| given.name == *name).expect("it was given").id
        };
        names.iter().map(id).collect()
    }
}
