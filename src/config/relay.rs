//! `[relay]` and `[admin]`: how the bridge works, and where it can be watched.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// `[relay]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RelayConfig {
    /// How many rows one claim takes at most.
    pub batch_size: u16,
    /// How long a claimed row is ours.
    pub lease_seconds: u16,
    /// How often is looked for work when nobody wakes the worker.
    pub poll_ms: u64,
    /// How long to gather rows while claims come back nearly empty under load.
    pub debounce_ms: u64,
    /// Whether to sleep until a NOTIFY; without it, polling alone finds work.
    pub listen: bool,
    /// Work that waits for longer, while none is finished, makes the bridge unready.
    pub stalled_seconds: u16,
    /// How long a shutdown waits for what is under way.
    pub shutdown_seconds: u64,
}

impl Default for RelayConfig {
    fn default() -> Self {
        Self {
            batch_size: 500,
            lease_seconds: 60,
            poll_ms: 500,
            debounce_ms: 1,
            listen: true,
            stalled_seconds: 60,
            shutdown_seconds: 40,
        }
    }
}

impl RelayConfig {
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }

    pub fn stalled(&self) -> Duration {
        Duration::from_secs(self.stalled_seconds.into())
    }
}

/// `[admin]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdminConfig {
    /// Where `/livez`, `/readyz` and `/metrics` are served.
    pub listen: SocketAddr,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 9464)) }
    }
}
