//! Producers: new rows, repeated ones and conflicting ones, alone and in sets.

use tokio_postgres::Row as Answer;
use uuid::Uuid;

use super::case::{Case, Checked, RAILS, agree};
use super::model::Locks;
use super::state::{FREE, Key, Name, Position, Row, State};
use super::steps::{KeyChoice, NewRow};

const ONE: &str = "SELECT 1, outbox_id, sequence_id, is_new, NULL::text FROM outbox.enqueue_payment_outbox(\
    $1, $2, $3, $4, jsonb_build_object('n', $5::text), p_not_before => outbox.clock() + NULLIF($6::int4, 0) * interval '1 second')";

const MANY: &str = "SELECT row_no, outbox_id, sequence_id, is_new, error_code FROM outbox.enqueue_payment_outbox_batch((
    SELECT jsonb_agg((r.j - 'delay') || jsonb_build_object(
      'not_before', outbox.clock() + NULLIF((r.j ->> 'delay')::int4, 0) * interval '1 second') ORDER BY r.n)
    FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS r (j, n)), $2)";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    key: Key,
    participant: String,
    rail: String,
    payload: String,
    delay_seconds: i32,
}

impl Request {
    /// Under the same key this is the same request; when it is due does not matter.
    fn is_same(&self, other: &Self) -> bool {
        (&self.participant, &self.rail, &self.payload)
            == (&other.participant, &other.rail, &other.payload)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "instruction_id": self.key.0, "idempotency_key": self.key.1, "participant_id": self.participant,
            "rail_type": self.rail, "payload": {"n": self.payload}, "delay": self.delay_seconds,
        })
    }

    /// The row that it becomes, due at `next_at`.
    pub(super) fn row(&self, sequence: i64, next_at: i64) -> Row {
        Row {
            lane: (self.participant.clone(), self.rail.clone()),
            sequence,
            position: Position(sequence),
            key: self.key.clone(),
            payload: self.payload.clone(),
            attempts: 0,
            next_at,
            lease: None,
            solo: self.is_solo(),
            replay_of: None,
        }
    }

    fn is_solo(&self) -> bool {
        self.rail == FREE && self.delay_seconds > 0
    }
}

/// What becomes of a row: a new one with this number, that of another place in the batch, one that
/// was there, or a conflict.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    New(i64),
    Repeats(usize),
    Known(Uuid, i64),
    Conflict,
}

impl Case<'_> {
    pub(super) fn request(&mut self, row: &NewRow) -> Request {
        let count = self.requests.len();
        let used = |nth: usize| self.requests[nth % count.max(1)].clone();
        let request = match row.key {
            KeyChoice::Used(nth) if count > 0 => {
                Request { delay_seconds: row.delay_seconds, ..used(nth) }
            }
            KeyChoice::Conflicting(nth) if count > 0 => self.conflicting(used(nth), row),
            _ => Request {
                key: (
                    self.instructions[count % self.instructions.len()].clone(),
                    format!("k{count}"),
                ),
                participant: self.participants[row.participant].clone(),
                rail: RAILS[row.rail].into(),
                payload: "1".into(),
                delay_seconds: row.delay_seconds,
            },
        };
        self.requests.push(request.clone());
        request
    }

    /// Another payload, or whatever else the step happens to name.
    fn conflicting(&self, used: Request, row: &NewRow) -> Request {
        match row.rail {
            0 => Request { payload: "2".into(), ..used },
            1 => Request { rail: RAILS[row.participant].into(), ..used },
            _ => Request { participant: self.participants[row.participant].clone(), ..used },
        }
    }

    pub(super) async fn enqueue(
        &mut self,
        session: usize,
        requests: &[Request],
        batch: bool,
        report: bool,
    ) -> Checked {
        if !self.model.takes(session, true)
            || requests.iter().any(|request| self.waits(session, request))
        {
            self.note("left out", 1);
            return Ok(());
        }
        let view = self.model.view(session);
        let fates = self.fates(&view, requests);
        let answer = self.call(session, requests, batch, report).await;
        if fates.contains(&Fate::Conflict) && !(batch && report) {
            self.refused(session).await;
            self.note("conflicting key refused", 1);
            return agree(
                "a conflicting enqueue",
                &Err("P7004".to_owned()),
                &answer.map(|_| ()).map_err(|e| e.0),
            );
        }
        let rows = answer.map_err(|error| format!("an enqueue was refused: {error:?}"))?;
        let ids = answered(&rows, &fates)?;
        self.adopt(session, view, requests.iter().zip(&fates).zip(ids));
        Ok(())
    }

    /// The rows are there, under the ids that the server gave them.
    fn adopt<'a>(
        &mut self,
        session: usize,
        mut after: State,
        rows: impl Iterator<Item = ((&'a Request, &'a Fate), Uuid)>,
    ) {
        let mut locks = Locks::default();
        for ((request, fate), id) in rows {
            after.next.entry(request.participant.clone()).or_insert(1);
            locks.participants.insert(request.participant.clone());
            match fate {
                Fate::New(sequence) => {
                    self.insert(&mut after, &mut locks, request, *sequence, id);
                    self.note("enqueued", 1);
                }
                _ => self.note("repeated key", 1),
            }
        }
        self.model.changed(session, after, locks, true);
    }

    fn waits(&self, session: usize, request: &Request) -> bool {
        let lane = (request.participant.clone(), request.rail.clone(), 0);
        self.model.participant_is_locked(session, &request.participant)
            || self.model.key_is_locked(session, &request.key)
            || self.model.admission_may_wait(session, &lane)
    }

    fn fates(&self, view: &State, requests: &[Request]) -> Vec<Fate> {
        let mut next = view.next.clone();
        let mut fates: Vec<Fate> = Vec::new();
        for (at, request) in requests.iter().enumerate() {
            let earlier = (0..at)
                .find(|n| matches!(fates[*n], Fate::New(_)) && requests[*n].key == request.key);
            let fate = match (view.keys.get(&request.key), earlier) {
                (Some(id), _) => match &self.made[id] {
                    (made, sequence) if made.is_same(request) => Fate::Known(*id, *sequence),
                    _ => Fate::Conflict,
                },
                (None, Some(n)) if requests[n].is_same(request) => Fate::Repeats(n),
                (None, Some(_)) => Fate::Conflict,
                (None, None) => {
                    let number = next.entry(request.participant.clone()).or_insert(1);
                    *number += 1;
                    Fate::New(*number - 1)
                }
            };
            fates.push(fate);
        }
        fates
    }

    async fn call(
        &mut self,
        session: usize,
        requests: &[Request],
        batch: bool,
        report: bool,
    ) -> Result<Vec<Answer>, (String, String)> {
        let session = &mut self.bench.sessions[session];
        if batch {
            let rows =
                serde_json::Value::Array(requests.iter().map(Request::json).collect()).to_string();
            return session.query(MANY, &[&rows, &report]).await;
        }
        let Request { key, participant, rail, payload, delay_seconds } = &requests[0];
        session.query(ONE, &[&key.0, participant, &key.1, rail, payload, delay_seconds]).await
    }

    fn insert(
        &mut self,
        after: &mut State,
        locks: &mut Locks,
        request: &Request,
        sequence: i64,
        id: Uuid,
    ) {
        let row = request.row(sequence, self.model.now + i64::from(request.delay_seconds) * 1000);
        locks.keys.insert(request.key.clone());
        locks.admitted.insert(row.lane_id());
        after.keys.insert(request.key.clone(), id);
        after.next.insert(request.participant.clone(), sequence + 1);
        after.rows.insert(Name::Own(id), row);
        self.made.insert(id, (request.clone(), sequence));
    }
}

/// The ids that the server gave, if it did with each row what it had to.
fn answered(rows: &[Answer], fates: &[Fate]) -> Result<Vec<Uuid>, String> {
    agree("the rows of an enqueue", &fates.len(), &rows.len())?;
    let ids: Vec<Option<Uuid>> = rows.iter().map(|row| row.get(1)).collect();
    for (at, (row, fate)) in rows.iter().zip(fates).enumerate() {
        let found = (
            ids[at],
            row.get::<_, Option<i64>>(2),
            row.get::<_, bool>(3),
            row.get::<_, Option<String>>(4),
        );
        let number = |at: usize| rows[at].get::<_, Option<i64>>(2);
        let expected = match fate {
            Fate::New(sequence) => (found.0, Some(*sequence), true, None),
            Fate::Repeats(earlier) => (ids[*earlier], number(*earlier), false, None),
            Fate::Known(id, sequence) => (Some(*id), Some(*sequence), false, None),
            Fate::Conflict => (None, None, false, Some("P7004".to_owned())),
        };
        agree("an enqueued row", &expected, &found)?;
    }
    Ok(ids.into_iter().map(Option::unwrap_or_default).collect())
}
