//! Writes down outcomes, and gives leases back or makes them longer.

use std::collections::HashMap;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::worker::Parameter;
use super::{StoreError, WorkerStore};

/// One row for all, because a thousand answers cost as much as their outcomes: columns, in the order of what was asked.
const COMPLETE: &str = "SELECT array_agg(attempt_no), array_agg(state::text), array_agg(refusal), bool_or(more) \
    FROM outbox.complete_outbox_batch($1, $2, $3, $4::text[]::outbox.outbox_attempt_state[], \
    $5, $6, $7, $8, $9, $10, $11)";
const RELEASE: &str =
    "SELECT outbox_id FROM outbox.release_outbox_leases($1, $2, $3, $4) WHERE busy";
const RENEW: &str =
    "SELECT outbox_id, lease_expires_at IS NULL FROM outbox.renew_outbox_leases($1, $2, $3, $4)";
const REPAIR: &str = "SELECT outbox_id, participant_id, rail_type, expired_worker_id, lane_paused \
    FROM outbox.repair_expired_leases($1, $2)";

/// A delay as the functions take it: whole seconds, never shorter than it is.
pub fn whole_seconds(delay: Duration) -> i32 {
    i32::try_from(delay.as_millis().div_ceil(1_000)).unwrap_or(i32::MAX)
}

/// One outcome of a batch.
#[derive(Debug)]
pub struct OutcomeRow {
    pub outbox_id: Uuid,
    pub lease_token: Uuid,
    pub state: &'static str,
    pub rail_reference: Option<String>,
    pub rail_code: Option<String>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub latency_ms: i32,
    pub retry_delay_seconds: Option<i32>,
    pub counted: bool,
}

/// What the database made of an outcome.
#[derive(Debug)]
pub struct Recorded {
    /// Absent when it was refused, as is its state.
    pub attempt_no: Option<i32>,
    pub state: Option<String>,
    /// The SQLSTATE of a refusal.
    pub refusal: Option<String>,
}

/// What became of a batch of outcomes.
#[derive(Debug)]
pub struct Completed {
    pub recorded: Vec<Recorded>,
    /// Whether a claim would find something now that it could not have found before.
    pub more: bool,
}

/// The SQLSTATE of a refusal that decides nothing: somebody else has locked the lane.
const LANE_BUSY: &str = "P7018";

impl Recorded {
    /// Whether it has to be asked for again.
    pub fn is_busy(&self) -> bool {
        self.refusal.as_deref() == Some(LANE_BUSY)
    }

    /// Whether it was not written, and never will be.
    pub fn is_refused(&self) -> bool {
        self.refusal.is_some() && !self.is_busy()
    }
}

/// What became of a lease that was to be longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    Longer,
    /// As it was: somebody else has locked the lane.
    Busy,
}

/// A lease that somebody lost, and that is mended now.
#[derive(Debug)]
pub struct Repaired {
    pub outbox_id: Uuid,
    pub participant_id: String,
    pub rail_type: String,
    pub expired_worker_id: String,
    pub lane_paused: bool,
}

impl WorkerStore {
    /// Records a batch of outcomes in one transaction; a refused row never fails its neighbours.
    pub async fn complete(
        &self,
        worker_id: &str,
        outcomes: &[&OutcomeRow],
    ) -> Result<Completed, StoreError> {
        let column = Columns(outcomes);
        let rows = self
            .query(
                COMPLETE,
                &[
                    (&worker_id, Type::TEXT),
                    (&column.of(|row| row.outbox_id), Type::UUID_ARRAY),
                    (&column.of(|row| row.lease_token), Type::UUID_ARRAY),
                    (&column.of(|row| row.state), Type::TEXT_ARRAY),
                    (&column.known(|row| row.rail_reference.as_deref()), Type::TEXT_ARRAY),
                    (&column.known(|row| row.rail_code.as_deref()), Type::TEXT_ARRAY),
                    (&column.known(|row| row.error_code.as_deref()), Type::TEXT_ARRAY),
                    (&column.known(|row| row.error_message.as_deref()), Type::TEXT_ARRAY),
                    (&column.of(|row| row.latency_ms), Type::INT4_ARRAY),
                    (&column.known(|row| row.retry_delay_seconds), Type::INT4_ARRAY),
                    (&column.known(|row| (!row.counted).then_some(false)), Type::BOOL_ARRAY),
                ],
            )
            .await?;
        let answer = rows.first().ok_or_else(|| no_answer(0, outcomes.len()))?;
        completed(answer, outcomes.len())
    }

    /// Gives back rows that were certainly not sent, with what stands behind them. Returns those
    /// whose lane is busy: they have to be asked for again.
    pub async fn release(
        &self,
        worker_id: &str,
        leases: &[(Uuid, Uuid)],
        delay_seconds: i32,
    ) -> Result<Vec<Uuid>, StoreError> {
        let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leases.iter().copied().unzip();
        let asked = asked(&worker_id, &ids, &tokens, &delay_seconds);
        let rows = self.query(RELEASE, &asked).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// Makes leases longer, whole lanes at a time. A row that is not returned is not ours any more.
    pub async fn renew(
        &self,
        worker_id: &str,
        leases: &[(Uuid, Uuid)],
        lease_seconds: i32,
    ) -> Result<HashMap<Uuid, Renewed>, StoreError> {
        let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = leases.iter().copied().unzip();
        let asked = asked(&worker_id, &ids, &tokens, &lease_seconds);
        let rows = self.query(RENEW, &asked).await?;
        let renewed = |busy| if busy { Renewed::Busy } else { Renewed::Longer };
        rows.iter().map(|row| Ok((row.try_get(0)?, renewed(row.try_get(1)?)))).collect()
    }

    /// Repairs up to `lanes` expired lanes.
    pub async fn repair(&self, worker_id: &str, lanes: i32) -> Result<Vec<Repaired>, StoreError> {
        let rows = self.query(REPAIR, &[(&lanes, Type::INT4), (&worker_id, Type::TEXT)]).await?;
        rows.iter()
            .map(|row| {
                Ok(Repaired {
                    outbox_id: row.try_get(0)?,
                    participant_id: row.try_get(1)?,
                    rail_type: row.try_get(2)?,
                    expired_worker_id: row.try_get(3)?,
                    lane_paused: row.try_get(4)?,
                })
            })
            .collect()
    }
}

/// Every outcome has its answer: which is whose can only be told by their order.
fn completed(answer: &Row, outcomes: usize) -> Result<Completed, StoreError> {
    let attempt_nos: Vec<Option<i32>> = answer.try_get(0)?;
    let states: Vec<Option<String>> = answer.try_get(1)?;
    let refusals: Vec<Option<String>> = answer.try_get(2)?;
    if attempt_nos.len() != outcomes {
        return Err(no_answer(attempt_nos.len(), outcomes));
    }
    let recorded = attempt_nos.into_iter().zip(states).zip(refusals);
    let recorded =
        recorded.map(|((attempt_no, state), refusal)| Recorded { attempt_no, state, refusal });
    Ok(Completed { recorded: recorded.collect(), more: answer.try_get(3)? })
}

fn no_answer(answers: usize, outcomes: usize) -> StoreError {
    StoreError::Protocol(format!("{answers} answers to {outcomes} outcomes"))
}

/// Whose leases, which, and for how long.
fn asked<'a>(
    worker_id: &'a &str,
    ids: &'a Vec<Uuid>,
    tokens: &'a Vec<Uuid>,
    seconds: &'a i32,
) -> [Parameter<'a>; 4] {
    [
        (worker_id, Type::TEXT),
        (ids, Type::UUID_ARRAY),
        (tokens, Type::UUID_ARRAY),
        (seconds, Type::INT4),
    ]
}

/// The function takes arrays, one for each column.
struct Columns<'a>(&'a [&'a OutcomeRow]);

impl<'a> Columns<'a> {
    /// Nothing at all where no row has it: the server need not take it apart.
    fn known<T>(&self, read: impl Fn(&'a OutcomeRow) -> Option<T>) -> Option<Vec<Option<T>>> {
        let column = self.of(read);
        column.iter().any(Option::is_some).then_some(column)
    }

    fn of<T>(&self, read: impl Fn(&'a OutcomeRow) -> T) -> Vec<T> {
        self.0.iter().copied().map(read).collect()
    }
}
