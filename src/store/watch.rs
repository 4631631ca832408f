//! What a worker looks at now and then: policies, gauges, upkeep.

use std::time::SystemTime;

use tokio_postgres::types::Type;

use super::upkeep::{self, UpkeepRow};
use super::{StoreError, WorkerStore};

const CHECK_POLICIES: &str = "SELECT outbox.check_rail_policies($1)";
const GAUGES: &str = "SELECT pending_depth, depth_is_exact, oldest_pending_at, dlq_depth, \
    expired_leases, due_lanes, unroutable_lanes, halted_shards FROM outbox.outbox_gauges($1)";

/// What the gauges show.
#[derive(Debug)]
pub struct Gauges {
    pub pending_depth: i64,
    pub depth_is_exact: bool,
    pub oldest_pending_at: Option<SystemTime>,
    pub dlq_depth: i64,
    pub expired_leases: i64,
    /// Lanes that wait for one of the asked rails.
    pub due_lanes: i64,
    /// Lanes that wait for another rail.
    pub unroutable_lanes: i64,
    /// Shards that wait for an operator.
    pub halted_shards: i64,
}

impl WorkerStore {
    /// Fails with both values when a policy of this configuration is not the one in force.
    pub async fn check_policies(&self, policies: &serde_json::Value) -> Result<(), StoreError> {
        self.query(CHECK_POLICIES, &[(policies, Type::JSONB)]).await.map(|_| ())
    }

    /// What the gauges of a worker with these rails show.
    pub async fn gauges(&self, rails: &[&str]) -> Result<Gauges, StoreError> {
        let rows = self.query(GAUGES, &[(&rails, Type::TEXT_ARRAY)]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Protocol("no gauges".to_owned()))?;
        Ok(Gauges {
            pending_depth: row.try_get(0)?,
            depth_is_exact: row.try_get(1)?,
            oldest_pending_at: row.try_get(2)?,
            dlq_depth: row.try_get(3)?,
            expired_leases: row.try_get(4)?,
            due_lanes: row.try_get(5)?,
            unroutable_lanes: row.try_get(6)?,
            halted_shards: row.try_get(7)?,
        })
    }

    /// One round of upkeep; of several workers that ask at once, one works.
    pub async fn upkeep(&self) -> Result<Vec<UpkeepRow>, StoreError> {
        upkeep::read(&self.query(upkeep::UPKEEP, &[]).await?)
    }
}
