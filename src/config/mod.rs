//! Configuration: defaults, then `trestle.toml` (or `--config`), then the environment.
//!
//! Whatever is wrong is reported with its key, where it was set and what would be right, and
//! never with its value: a value may be a password.

mod check;
mod error;
mod explain;
mod keys;
mod load;
mod rails;
mod relay;
mod schema_choice;
mod secret;
mod shown;
mod sources;
mod telemetry;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use error::ConfigError;
pub use explain::{Entry, Origin, explain};
pub use load::load;
pub use rails::{
    Delivery, DlqConfig, HeaderStyle, HttpRailConfig, KafkaRailConfig, OnFailed, Ordering,
    RailConfig,
};
pub use relay::{AdminConfig, RelayConfig};
pub use schema_choice::SchemaChoice;
pub use secret::Secret;
pub use telemetry::TelemetryConfig;

/// The file that is read when `--config` names no other.
pub const DEFAULT_FILE: &str = "trestle.toml";

/// Everything that can be configured.
#[derive(Debug, Serialize)]
pub struct Config {
    pub database: DatabaseConfig,
    pub relay: RelayConfig,
    pub rails: BTreeMap<String, RailConfig>,
    pub dlq: Option<DlqConfig>,
    pub admin: AdminConfig,
    pub telemetry: TelemetryConfig,
}

/// `[database]`: where the outbox lives.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseConfig {
    /// `postgres://user:password@host:port/database`
    pub url: Option<Secret>,
    /// A connection that does not go through a pooler, for LISTEN. Without it, `url`.
    pub listen_url: Option<Secret>,
}

impl DatabaseConfig {
    /// The connection string, or the error that says how to give one.
    pub fn required_url(&self) -> Result<&Secret, ConfigError> {
        self.url.as_ref().ok_or(ConfigError::MissingDatabaseUrl)
    }
}
