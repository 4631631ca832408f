//! The rail policies that are in force.

use serde_json::{Map, Value};

use super::{Store, StoreError};

const READ: &str = "SELECT rail_type, jsonb_build_object('ordering', ordering, 'on_failed', on_failed, \
    'delivery', delivery, 'dlq', dlq, 'shards', shards) FROM outbox.payment_outbox_rail_policies WHERE in_force";
const SET: &str = "SELECT outbox.set_rail_policies($1, $2, $3)";

impl Store {
    /// By rail; one that is not named has the defaults.
    pub async fn rail_policies(&self) -> Result<Map<String, Value>, StoreError> {
        let rows = self.client.query(READ, &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    /// Puts a new version of all policies in force, and returns its number.
    pub async fn set_rail_policies(
        &self,
        policies: &Map<String, Value>,
        actor: &str,
        reason: &str,
    ) -> Result<i32, StoreError> {
        let policies = Value::Object(policies.clone());
        Ok(self.client.query_one(SET, &[&policies, &actor, &reason]).await?.try_get(0)?)
    }
}
