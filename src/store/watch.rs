//! What a worker looks at now and then: policies, gauges, upkeep.

use serde::Deserialize;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::upkeep::{self, UpkeepRow};
use super::worker::Parameter;
use super::{StoreError, WorkerStore};

const CHECK_POLICIES: &str = "SELECT outbox.check_rail_policies($1)";
const GAUGES: &str = "SELECT outbox.sample_outbox_gauges()";
const WAITING: &str = "SELECT rail_type, is_due FROM outbox.waiting_rails($1, $2)";

/// How the outbox is doing, in numbers, as one worker has sampled it for all.
#[derive(Debug, Default, Deserialize)]
pub struct Gauges {
    pub pending_depth: i64,
    pub depth_is_exact: bool,
    /// Nothing when no row is pending.
    pub oldest_pending_age_seconds: Option<f64>,
    pub dlq_depth: i64,
    /// Nothing when no dead letter waits.
    pub dlq_undelivered_age_seconds: Option<f64>,
    /// In lanes, as everything up to `unroutable_lanes`.
    pub expired_leases: i64,
    pub due_lanes: i64,
    pub delayed_lanes: i64,
    pub blocked_lanes: i64,
    pub leased_lanes: i64,
    pub paused_lanes: i64,
    pub halted_lanes: i64,
    pub unroutable_lanes: i64,
    pub workers: i64,
    pub default_partition_rows: i64,
    pub dead_tuples: i64,
    pub oldest_snapshot_age_seconds: f64,
    /// Shards that wait for an operator.
    pub halted_shards: i64,
}

/// A rail that has lanes waiting.
#[derive(Debug)]
pub struct WaitingRail {
    pub rail_type: String,
    /// Otherwise it will be, soon.
    pub is_due: bool,
}

impl WorkerStore {
    /// Fails with both values when a policy of this configuration is not the one in force.
    pub async fn check_policies(&self, policies: &serde_json::Value) -> Result<(), StoreError> {
        self.query(CHECK_POLICIES, &[(policies, Type::JSONB)]).await.map(|_| ())
    }

    /// The last sample of the gauges; this worker takes the next one if it is time. Nothing until the
    /// first one is taken.
    pub async fn sample_gauges(&self) -> Result<Option<Gauges>, StoreError> {
        let rows = self.query(GAUGES, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Protocol("no gauges".to_owned()))?;
        let Some(sample) = row.try_get::<_, Option<serde_json::Value>>(0)? else { return Ok(None) };
        serde_json::from_value(sample)
            .map(Some)
            .map_err(|error| StoreError::Protocol(format!("gauges of another form: {error}")))
    }

    /// Which of these rails have lanes waiting, of one tenant or of all.
    pub async fn waiting_rails(
        &self,
        rails: &[&str],
        tenant_id: Option<Uuid>,
    ) -> Result<Vec<WaitingRail>, StoreError> {
        let parameters: &[Parameter<'_>] = &[(&rails, Type::TEXT_ARRAY), (&tenant_id, Type::UUID)];
        let rows = self.query(WAITING, parameters).await?;
        let read =
            |row: &Row| Ok(WaitingRail { rail_type: row.try_get(0)?, is_due: row.try_get(1)? });
        rows.iter().map(read).collect()
    }

    /// One round of upkeep; of several workers that ask at once, one works.
    pub async fn upkeep(&self) -> Result<Vec<UpkeepRow>, StoreError> {
        upkeep::read(&self.query(upkeep::UPKEEP, &[]).await?)
    }
}
