//! How the outbox is doing, as one picture of one moment.

use serde::Serialize;
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, Row, Transaction};
use uuid::Uuid;

use super::{LaneStatus, Moment, Store, StoreError, lanes};

const TOTALS: &str = "SELECT pending_depth, depth_is_exact, oldest_pending_age_seconds::bigint, \
    dlq_depth, expired_leases FROM outbox.outbox_gauges()";
const RAILS: &str = "SELECT rail_type, sum(depth)::bigint, max(oldest_age_seconds)::bigint, \
    sum(due_unleased_count)::bigint, sum(leased_count)::bigint, sum(expired_lease_count)::bigint, \
    sum(dlq_count)::bigint, sum(dlq_undelivered_count)::bigint \
    FROM outbox.supervisor_outbox_status GROUP BY rail_type ORDER BY rail_type";
const WORKERS: &str = "SELECT worker_id, rail_types, tenant_id, live, started_at, seen_at, \
    EXTRACT(epoch FROM clock_timestamp() - seen_at)::bigint, leased_lanes, expired_lanes, \
    first_expiry_at, EXTRACT(epoch FROM first_expiry_at - clock_timestamp())::bigint \
    FROM outbox.outbox_worker_status ORDER BY worker_id";

/// Everything that `trestle status` shows.
#[derive(Debug, Serialize)]
pub struct Overview {
    pub pending_depth: i64,
    /// False beyond 100,000 rows, where the depth is an estimate.
    pub depth_is_exact: bool,
    pub oldest_pending_age_seconds: Option<i64>,
    pub dlq_depth: i64,
    /// In lanes.
    pub expired_leases: i64,
    pub rails: Vec<RailStatus>,
    /// Stopped ones first; at most as many as were asked for.
    pub waiting_lanes: Vec<LaneStatus>,
    pub workers: Vec<WorkerStatus>,
}

#[derive(Debug, Serialize)]
pub struct RailStatus {
    pub rail_type: String,
    pub pending: i64,
    pub oldest_age_seconds: Option<i64>,
    pub due: i64,
    pub leased: i64,
    pub lease_expired: i64,
    /// FAILED, and neither replayed nor dismissed.
    pub failed: i64,
    pub dead_letters_waiting: i64,
}

/// A worker that was seen lately, or holds leases.
#[derive(Debug, Serialize)]
pub struct WorkerStatus {
    pub worker_id: String,
    pub rail_types: String,
    /// The only tenant that it serves.
    pub tenant_id: Option<Uuid>,
    pub live: bool,
    /// Not known of one that has leases and never said that it is there.
    pub started_at: Option<Moment>,
    pub seen_at: Option<Moment>,
    pub seen_seconds_ago: Option<i64>,
    pub leased_lanes: i64,
    pub expired_lanes: i64,
    pub first_expiry_at: Option<Moment>,
    /// Negative when it is over.
    pub first_expiry_seconds: Option<i64>,
}

impl Store {
    pub async fn overview(&mut self, waiting_lanes: i32) -> Result<Overview, StoreError> {
        let begin = self.client.build_transaction().read_only(true);
        let transaction = begin.isolation_level(IsolationLevel::RepeatableRead).start().await?;
        let totals = transaction.query_typed(TOTALS, &[]).await?;
        let totals = totals.first().ok_or_else(|| StoreError::Protocol("no totals".to_owned()))?;
        let overview = Overview {
            pending_depth: totals.try_get(0)?,
            depth_is_exact: totals.try_get(1)?,
            oldest_pending_age_seconds: totals.try_get(2)?,
            dlq_depth: totals.try_get(3)?,
            expired_leases: totals.try_get(4)?,
            rails: all(&transaction, RAILS, rail).await?,
            waiting_lanes: waiting(&transaction, waiting_lanes).await?,
            workers: all(&transaction, WORKERS, worker).await?,
        };
        transaction.commit().await?;
        Ok(overview)
    }
}

async fn all<T>(
    transaction: &Transaction<'_>,
    statement: &str,
    read: fn(&Row) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    transaction.query_typed(statement, &[]).await?.iter().map(read).collect()
}

async fn waiting(transaction: &Transaction<'_>, limit: i32) -> Result<Vec<LaneStatus>, StoreError> {
    let everybody: Option<&str> = None;
    let rows = transaction
        .query_typed(
            lanes::LANES,
            &[
                (&everybody, Type::TEXT),
                (&everybody, Type::TEXT),
                (&true, Type::BOOL),
                (&limit, Type::INT4),
            ],
        )
        .await?;
    rows.iter().map(lanes::read).collect()
}

fn rail(row: &Row) -> Result<RailStatus, StoreError> {
    Ok(RailStatus {
        rail_type: row.try_get(0)?,
        pending: row.try_get(1)?,
        oldest_age_seconds: row.try_get(2)?,
        due: row.try_get(3)?,
        leased: row.try_get(4)?,
        lease_expired: row.try_get(5)?,
        failed: row.try_get(6)?,
        dead_letters_waiting: row.try_get(7)?,
    })
}

fn worker(row: &Row) -> Result<WorkerStatus, StoreError> {
    Ok(WorkerStatus {
        worker_id: row.try_get(0)?,
        rail_types: row.try_get(1)?,
        tenant_id: row.try_get(2)?,
        live: row.try_get(3)?,
        started_at: row.try_get::<_, Option<_>>(4)?.map(Moment),
        seen_at: row.try_get::<_, Option<_>>(5)?.map(Moment),
        seen_seconds_ago: row.try_get(6)?,
        leased_lanes: row.try_get(7)?,
        expired_lanes: row.try_get(8)?,
        first_expiry_at: row.try_get::<_, Option<_>>(9)?.map(Moment),
        first_expiry_seconds: row.try_get(10)?,
    })
}
