//! Upkeep of the ledger's partitions.

use serde::Serialize;

use super::{Store, StoreError};

pub(super) const UPKEEP: &str =
    "SELECT action, partition_name::text, detail::text FROM outbox.run_outbox_upkeep()";

/// One thing that upkeep did, or could not do yet.
#[derive(Debug, Serialize)]
pub struct UpkeepRow {
    pub action: String,
    #[serde(rename = "partition")]
    pub partition_name: Option<String>,
    pub detail: Option<String>,
}

impl UpkeepRow {
    /// Not a thing that was done, but the wish to be called once more.
    pub fn asks_for_more(&self) -> bool {
        self.action == "again"
    }
}

impl Store {
    /// One round of upkeep. A row with the action `again` says that there is more to do.
    pub async fn run_upkeep(&self) -> Result<Vec<UpkeepRow>, StoreError> {
        read(&self.client.query(UPKEEP, &[]).await?)
    }
}

pub(super) fn read(rows: &[tokio_postgres::Row]) -> Result<Vec<UpkeepRow>, StoreError> {
    rows.iter()
        .map(|row| {
            Ok(UpkeepRow {
                action: row.try_get(0)?,
                partition_name: row.try_get(1)?,
                detail: row.try_get(2)?,
            })
        })
        .collect()
}
