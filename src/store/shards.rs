//! Shards: who owns them, and what became of their batches.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::worker::Parameter;
use super::{StoreError, WorkerStore};
use crate::delivery::{Evidence, Places, Reconciled, Stand, Tenure};

const LEASE: &str = "SELECT shard, epoch, ready, under_way, leave, batch, look_again_ms \
    FROM outbox.lease_outbox_shards($1, $2, $3)";
const STAND: &str =
    "SELECT batch, under_way, offsets, sender FROM outbox.outbox_shard_stand($1, $2, $3, $4)";
const NOTE: &str = "SELECT outbox.note_shard_offsets($1, $2, $3, $4, $5)";
const RENEW: &str = "SELECT outbox.renew_shard_offsets($1, $2, $3, $4, $5, $6)";
const RECONCILE: &str = "SELECT batch, recovered, requeued, halted_reason \
    FROM outbox.reconcile_outbox_shard($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
const LEFT: &str = "SELECT waits, halted FROM outbox.outbox_shards_left($1, $2)";
const HALT: &str = "SELECT outbox.halt_outbox_shard($1, $2, $3, $4, $5)";
const RELEASE: &str = "SELECT outbox.release_outbox_shard($1, $2, $3, $4)";

/// A shard that a worker owns.
#[derive(Debug, Clone, Copy)]
pub struct LeasedShard {
    pub tenure: Tenure,
    /// Whether it is known what became of the batch before.
    pub ready: bool,
    pub under_way: bool,
    /// Whether another worker is to have it.
    pub leave: bool,
    /// The last that was claimed.
    pub batch: i64,
}

/// What a worker owns of a rail.
#[derive(Debug)]
pub struct LeasedShards {
    pub shards: Vec<LeasedShard>,
    /// When somebody else's may be free to take, if that is soon.
    pub look_again: Option<Duration>,
}

/// What a rail has, due now or in a moment, in shards that no other worker delivers.
#[derive(Debug, Clone, Copy)]
pub struct ShardsLeft {
    pub waits: bool,
    /// In shards that are halted.
    pub halted: bool,
}

/// Whose shard, of which rail.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    pub worker_id: &'a str,
    pub rail_type: &'a str,
    pub tenure: Tenure,
}

impl<'a> Holder<'a> {
    fn parameters(&'a self) -> Vec<Parameter<'a>> {
        vec![
            (&self.worker_id, Type::TEXT),
            (&self.rail_type, Type::TEXT),
            (&self.tenure.shard, Type::INT2),
            (&self.tenure.epoch, Type::INT8),
        ]
    }

    fn and(&'a self, more: impl IntoIterator<Item = Parameter<'a>>) -> Vec<Parameter<'a>> {
        let mut parameters = self.parameters();
        parameters.extend(more);
        parameters
    }
}

impl WorkerStore {
    /// Keeps our shards, takes free ones, and says which to give up. To be asked twice a second, or as soon as it says.
    pub async fn lease_shards(
        &self,
        worker_id: &str,
        rail_type: &str,
        lease_seconds: i32,
    ) -> Result<LeasedShards, StoreError> {
        let rows = self
            .query(
                LEASE,
                &[(&worker_id, Type::TEXT), (&rail_type, Type::TEXT), (&lease_seconds, Type::INT4)],
            )
            .await?;
        let leased = |row: &Row| {
            Ok(LeasedShard {
                tenure: Tenure { shard: row.try_get(0)?, epoch: row.try_get(1)? },
                ready: row.try_get(2)?,
                under_way: row.try_get(3)?,
                leave: row.try_get(4)?,
                batch: row.try_get(5)?,
            })
        };
        let ms: Option<i32> = rows.first().map_or(Ok(None), |row| row.try_get(6))?;
        // Who owns none may be told of a look all the same.
        let owned = |row: &&Row| !matches!(row.try_get::<_, Option<i16>>(0), Ok(None));
        let shards = rows.iter().filter(owned).map(leased).collect::<Result<_, StoreError>>()?;
        let look_again = ms.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
        Ok(LeasedShards { shards, look_again })
    }

    pub async fn shards_left(
        &self,
        worker_id: &str,
        rail_type: &str,
    ) -> Result<ShardsLeft, StoreError> {
        let rows = self.query(LEFT, &[(&worker_id, Type::TEXT), (&rail_type, Type::TEXT)]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Protocol("no answer".to_owned()))?;
        Ok(ShardsLeft { waits: row.try_get(0)?, halted: row.try_get(1)? })
    }

    pub async fn shard_stand(&self, holder: Holder<'_>) -> Result<Stand, StoreError> {
        let rows = self.query(STAND, &holder.parameters()).await?;
        let row = rows.first().ok_or_else(|| StoreError::Protocol("no shard".to_owned()))?;
        let places: Value = row.try_get(2)?;
        let places = serde_json::from_value(places)
            .map_err(|_| StoreError::Protocol("offsets of a shard that are none".to_owned()))?;
        let (batch, under_way, sender) = (row.try_get(0)?, row.try_get(1)?, row.try_get(3)?);
        Ok(Stand { batch, under_way, places, sender })
    }

    pub async fn note_places(&self, holder: Holder<'_>, places: &Places) -> Result<(), StoreError> {
        let places = json!(places);
        self.query(NOTE, &holder.and([(&places as _, Type::JSONB)])).await.map(|_| ())
    }

    pub async fn renew_places(
        &self,
        holder: Holder<'_>,
        last_batch: i64,
        places: &Places,
    ) -> Result<(), StoreError> {
        let places = json!(places);
        let parameters = holder.and([(&last_batch as _, Type::INT8), (&places as _, Type::JSONB)]);
        self.query(RENEW, &parameters).await.map(|_| ())
    }

    pub async fn reconcile_shard(
        &self,
        holder: Holder<'_>,
        stand: &Stand,
        evidence: &Evidence,
    ) -> Result<Reconciled, StoreError> {
        let ids: Vec<Uuid> = evidence.found.iter().map(|row| row.outbox_id).collect();
        let batches: Vec<i64> = evidence.found.iter().map(|row| row.batch).collect();
        let references: Vec<&str> =
            evidence.found.iter().map(|row| row.reference.as_str()).collect();
        let (complete, rows): (Vec<i64>, Vec<i32>) = evidence.complete.iter().copied().unzip();
        let (from, places) = (json!(stand.places), json!(evidence.places));
        let parameters = holder.and([
            (&stand.batch as _, Type::INT8),
            (&from as _, Type::JSONB),
            (&ids as _, Type::UUID_ARRAY),
            (&batches as _, Type::INT8_ARRAY),
            (&references as _, Type::TEXT_ARRAY),
            (&complete as _, Type::INT8_ARRAY),
            (&rows as _, Type::INT4_ARRAY),
            (&evidence.last_batch as _, Type::INT8),
            (&places as _, Type::JSONB),
            (&evidence.sender as _, Type::TEXT),
        ]);
        let rows = self.query(RECONCILE, &parameters).await?;
        let row = rows.first().ok_or_else(|| StoreError::Protocol("no shard".to_owned()))?;
        Ok(Reconciled {
            batch: row.try_get(0)?,
            recovered: row.try_get(1)?,
            requeued: row.try_get(2)?,
            halted: row.try_get(3)?,
        })
    }

    pub async fn halt_shard(&self, holder: Holder<'_>, reason: &str) -> Result<(), StoreError> {
        self.query(HALT, &holder.and([(&reason as _, Type::TEXT)])).await.map(|_| ())
    }

    pub async fn release_shard(&self, holder: Holder<'_>) -> Result<(), StoreError> {
        self.query(RELEASE, &holder.parameters()).await.map(|_| ())
    }
}
