//! Rows and configurations for the unit tests of this rail.

use std::time::SystemTime;

use figment::Figment;
use figment::providers::{Format, Toml};
use uuid::Uuid;

use crate::config::KafkaRailConfig;
use crate::delivery::Row;

/// A rail with the usual settings, and whatever `more` says in TOML.
pub(super) fn config(more: &str) -> KafkaRailConfig {
    let toml = format!("kind = \"kafka\"\nbrokers = \"127.0.0.1:1\"\ntopic = \"t\"\n{more}");
    Figment::from(Toml::string(&toml)).extract().unwrap()
}

pub(super) fn row(sequence_id: i64) -> Row {
    Row {
        outbox_id: Uuid::new_v4(),
        lease_token: Uuid::nil(),
        tenant_id: None,
        instruction_id: format!("instruction-{sequence_id}"),
        participant_id: "participant".to_owned(),
        sequence_id,
        idempotency_key: format!("key-{sequence_id}"),
        rail_type: "sepa".to_owned(),
        payload: "{}".to_owned(),
        headers: Vec::new(),
        attempt_no: 1,
        zombie_count: 0,
        turn_id: 1,
        in_doubt_since: None,
        batch: None,
        created_at: SystemTime::now(),
    }
}
