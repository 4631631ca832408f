//! What the ledger says was delivered to a topic, for a comparison with the topic itself.

use std::pin::Pin;
use std::time::SystemTime;

use futures_util::StreamExt as _;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, RowStream};
use uuid::Uuid;

use super::{Store, StoreError};

const CLOCK: &str = "SELECT clock_timestamp()";
/// In the order of the ids, so that nobody has to keep them all.
const DELIVERIES: &str = "SELECT outbox_id, participant_id, rail_type, sequence_id, rail_reference, \
    completed_at >= $4 FROM outbox.payment_outbox_attempts \
    WHERE state = 'DISPATCHED' AND starts_with(rail_reference, $1) AND rail_type <> ALL ($2) \
      AND ($3::timestamptz IS NULL OR completed_at >= $3) ORDER BY outbox_id";
/// The topics that the receipts of a rail name.
const TOPICS: &str = "SELECT DISTINCT split_part(rail_reference, '/', 1) FROM outbox.payment_outbox_attempts \
    WHERE state = 'DISPATCHED' AND rail_type = $1 AND rail_reference ~ '^[A-Za-z0-9._-]+/[0-9]+(@[0-9]+)?$' \
      AND ($2::timestamptz IS NULL OR completed_at >= $2) ORDER BY 1";
/// In one statement: a row leaves pending and enters the ledger in one transaction.
const FATES: &str = "SELECT i.id, p.outbox_id IS NOT NULL, a.state::text, a.participant_id, a.rail_type, \
    a.sequence_id, a.rail_reference FROM unnest($1::uuid[]) AS i (id) \
    LEFT JOIN outbox.payment_outbox_pending AS p ON p.outbox_id = i.id \
    LEFT JOIN outbox.payment_outbox_attempts AS a ON a.outbox_id = i.id AND a.state IN ('DISPATCHED', 'FAILED')";
/// The lower bound of the oldest hot partition, where there are older ones in the archive.
const HOT_FROM: &str = "SELECT b.bound::uuid FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid \
    CROSS JOIN LATERAL substring(pg_get_expr(c.relpartbound, c.oid) FROM 'FROM \\(''([0-9a-f-]{36})''') AS b (bound) \
    WHERE i.inhparent = (SELECT p.oid FROM pg_class AS p JOIN pg_namespace AS n ON n.oid = p.relnamespace \
                         WHERE n.nspname = 'outbox' AND p.relname = 'payment_outbox_attempts') \
      AND b.bound IS NOT NULL \
      AND EXISTS (SELECT FROM pg_class AS a JOIN pg_namespace AS n ON n.oid = a.relnamespace \
                  WHERE n.nspname = 'outbox_archive' AND a.relname LIKE 'payment\\_outbox\\_attempts\\_%') \
    ORDER BY b.bound LIMIT 1";

/// A row that the ledger has as DISPATCHED.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub outbox_id: Uuid,
    pub participant_id: String,
    pub rail_type: String,
    pub sequence_id: i64,
    /// `topic/partition@offset`
    pub reference: String,
    /// Completed after the moment that was asked about.
    pub is_late: bool,
}

/// Which deliveries are asked for.
#[derive(Debug)]
pub struct DeliveryFilter<'a> {
    pub topic: &'a str,
    /// Rails whose references mean something else.
    pub other_rails: &'a [&'a str],
    pub since: Option<SystemTime>,
    /// What was completed after this is late.
    pub late_from: SystemTime,
}

/// What became of a row.
#[derive(Debug)]
pub enum Fate {
    Pending,
    Delivered(Delivery),
    Failed,
    Unknown,
}

/// Deliveries that come one after the other, in the order of their ids.
pub struct Deliveries {
    rows: Pin<Box<RowStream>>,
}

impl Store {
    /// The database's time.
    pub async fn clock(&self) -> Result<SystemTime, StoreError> {
        let rows = self.client.query_typed(CLOCK, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Protocol("no time".to_owned()))?;
        Ok(row.try_get(0)?)
    }

    pub async fn deliveries(&self, filter: &DeliveryFilter<'_>) -> Result<Deliveries, StoreError> {
        let prefix = format!("{}/", filter.topic);
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
            (&prefix, Type::TEXT),
            (&filter.other_rails, Type::TEXT_ARRAY),
            (&filter.since, Type::TIMESTAMPTZ),
            (&filter.late_from, Type::TIMESTAMPTZ),
        ];
        let rows = self.client.query_typed_raw(DELIVERIES, parameters).await?;
        Ok(Deliveries { rows: Box::pin(rows) })
    }

    /// The topics to which rows of this rail were delivered, since then or ever.
    pub async fn topics_of(
        &self,
        rail: &str,
        since: Option<SystemTime>,
    ) -> Result<Vec<String>, StoreError> {
        let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&rail, Type::TEXT), (&since, Type::TIMESTAMPTZ)];
        let rows = self.client.query_typed(TOPICS, &parameters).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// What became of these rows, each once.
    pub async fn fates(&self, ids: &[Uuid]) -> Result<Vec<(Uuid, Fate)>, StoreError> {
        let rows = self.client.query_typed(FATES, &[(&ids, Type::UUID_ARRAY)]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, fate(row)?))).collect()
    }

    /// Where the hot ledger begins, if something older has been archived.
    pub async fn hot_from(&self) -> Result<Option<Uuid>, StoreError> {
        let rows = self.client.query_typed(HOT_FROM, &[]).await?;
        Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
    }
}

impl Deliveries {
    pub async fn next(&mut self) -> Result<Option<Delivery>, StoreError> {
        let Some(row) = self.rows.next().await.transpose()? else { return Ok(None) };
        Ok(Some(Delivery {
            outbox_id: row.try_get(0)?,
            participant_id: row.try_get(1)?,
            rail_type: row.try_get(2)?,
            sequence_id: row.try_get(3)?,
            reference: row.try_get(4)?,
            is_late: row.try_get(5)?,
        }))
    }
}

fn fate(row: &Row) -> Result<Fate, StoreError> {
    let (pending, state): (bool, Option<&str>) = (row.try_get(1)?, row.try_get(2)?);
    Ok(match state {
        _ if pending => Fate::Pending,
        Some("DISPATCHED") => Fate::Delivered(Delivery {
            outbox_id: row.try_get(0)?,
            participant_id: row.try_get(3)?,
            rail_type: row.try_get(4)?,
            sequence_id: row.try_get(5)?,
            reference: row.try_get::<_, Option<String>>(6)?.unwrap_or_default(),
            is_late: true,
        }),
        Some(_) => Fate::Failed,
        None => Fate::Unknown,
    })
}
