//! `[telemetry]`: where traces go.

use serde::{Deserialize, Serialize};

/// `[telemetry]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// A collector that takes OTLP over HTTP: `http://collector:4318`. Without it there are no spans.
    #[serde(serialize_with = "super::shown::optional_url")]
    pub otlp_endpoint: Option<String>,
}
