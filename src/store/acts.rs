//! What an operator does: each act is one call in a transaction of its own, with who and why.

use serde::Serialize;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{IsolationLevel, Row};
use uuid::Uuid;

use super::{Store, StoreError};

const PAUSE: &str = "SELECT outbox.pause_outbox_lane($1, $2, $3, $4)";
const RESUME: &str = "SELECT outbox.resume_outbox_lane($1, $2, $3, $4)";
const SKIP: &str = "SELECT outbox.skip_outbox_lane_head($1, $2, $3, $4)";
const REPLAY: &str = "SELECT outbox_id, sequence_id FROM outbox.replay_failed_outbox($1, $2, $3)";
// In the order of ids, so that two operators never wait for each other.
const DISMISS: &str = "SELECT outbox.dismiss_failed_outbox(i.outbox_id, $2, $3) \
    FROM (SELECT DISTINCT outbox_id FROM unnest($1) AS u (outbox_id) ORDER BY outbox_id) AS i";
const REPAIR: &str = "SELECT outbox_id, participant_id, rail_type, sequence_id, attempt_no, \
    expired_worker_id, lane_paused FROM outbox.repair_expired_leases($1, $2)";

/// A producer's open transaction can hold what an act needs: the operator is told, and does not wait
/// for ever.
const PATIENCE: &str = "SET LOCAL lock_timeout = '30s'";

/// A participant on a rail.
#[derive(Debug)]
pub struct LaneName<'a> {
    pub participant_id: &'a str,
    pub rail_type: &'a str,
}

/// Who does it, and why.
#[derive(Debug, Clone, Copy)]
pub struct By<'a> {
    pub actor: &'a str,
    pub reason: &'a str,
}

/// The row that carries a replay.
#[derive(Debug, Serialize)]
pub struct Replayed {
    pub outbox_id: Uuid,
    pub sequence_id: i64,
}

/// A row whose expired lease was taken back.
#[derive(Debug, Serialize)]
pub struct RepairedRow {
    pub outbox_id: Uuid,
    pub participant_id: String,
    pub rail_type: String,
    pub sequence_id: i64,
    pub attempt_no: i32,
    pub expired_worker_id: String,
    /// It came back for the fifth time.
    pub lane_paused: bool,
}

impl Store {
    pub async fn pause_lane(&mut self, lane: &LaneName<'_>, by: By<'_>) -> Result<(), StoreError> {
        self.act_on_lane(PAUSE, lane, by).await.map(|_| ())
    }

    pub async fn resume_lane(&mut self, lane: &LaneName<'_>, by: By<'_>) -> Result<(), StoreError> {
        self.act_on_lane(RESUME, lane, by).await.map(|_| ())
    }

    /// Returns the row that was skipped.
    pub async fn skip_lane_head(
        &mut self,
        lane: &LaneName<'_>,
        by: By<'_>,
    ) -> Result<Uuid, StoreError> {
        Ok(one(&self.act_on_lane(SKIP, lane, by).await?)?.try_get(0)?)
    }

    pub async fn replay(&mut self, outbox_id: Uuid, by: By<'_>) -> Result<Replayed, StoreError> {
        let parameters: [Parameter<'_>; 3] =
            [(&outbox_id, Type::UUID), (&by.actor, Type::TEXT), (&by.reason, Type::TEXT)];
        let rows = self.act(REPLAY, &parameters).await?;
        let row = one(&rows)?;
        Ok(Replayed { outbox_id: row.try_get(0)?, sequence_id: row.try_get(1)? })
    }

    /// All of them or, where one cannot be dismissed, none.
    pub async fn dismiss(&mut self, outbox_ids: &[Uuid], by: By<'_>) -> Result<(), StoreError> {
        let parameters: [Parameter<'_>; 3] =
            [(&outbox_ids, Type::UUID_ARRAY), (&by.actor, Type::TEXT), (&by.reason, Type::TEXT)];
        self.act(DISMISS, &parameters).await.map(|_| ())
    }

    /// Takes back the expired leases of at most so many lanes.
    pub async fn repair_leases(
        &mut self,
        lanes: i32,
        worker_id: &str,
    ) -> Result<Vec<RepairedRow>, StoreError> {
        let parameters: [Parameter<'_>; 2] = [(&lanes, Type::INT4), (&worker_id, Type::TEXT)];
        let rows = self.act(REPAIR, &parameters).await?;
        rows.iter().map(repaired).collect()
    }

    async fn act_on_lane(
        &mut self,
        statement: &str,
        lane: &LaneName<'_>,
        by: By<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let texts = [lane.participant_id, lane.rail_type, by.actor, by.reason];
        self.act(statement, &texts.each_ref().map(|text| (text as _, Type::TEXT))).await
    }

    /// At READ COMMITTED, whatever the database's default is: the contract asks for it.
    async fn act(
        &mut self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let begin = self.client.build_transaction();
        let transaction = begin.isolation_level(IsolationLevel::ReadCommitted).start().await?;
        transaction.batch_execute(PATIENCE).await?;
        let rows = transaction.query_typed(statement, parameters).await?;
        transaction.commit().await?;
        Ok(rows)
    }
}

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

fn one(rows: &[Row]) -> Result<&Row, StoreError> {
    rows.first().ok_or_else(|| StoreError::Protocol("an act without an answer".to_owned()))
}

fn repaired(row: &Row) -> Result<RepairedRow, StoreError> {
    Ok(RepairedRow {
        outbox_id: row.try_get(0)?,
        participant_id: row.try_get(1)?,
        rail_type: row.try_get(2)?,
        sequence_id: row.try_get(3)?,
        attempt_no: row.try_get(4)?,
        expired_worker_id: row.try_get(5)?,
        lane_paused: row.try_get(6)?,
    })
}
