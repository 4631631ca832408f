//! Merges the sources of configuration.

use std::collections::BTreeMap;
use std::path::Path;

use figment::Figment;
use figment::value::Value;
use serde::Deserialize;

use super::sources::{self, File, Variable, with_dots, without_dots};
use super::{
    AdminConfig, Config, ConfigError, DEFAULT_FILE, DatabaseConfig, DlqConfig, RailConfig,
    RelayConfig, TelemetryConfig, check,
};

const DATABASE_URL: [&str; 2] = ["database", "url"];
/// What says that libpq's variables say where the database is, and the URL that leaves it to them.
const PGHOST: &str = "PGHOST";
const SAYS_NOTHING: &str = "postgres://";

/// Where a Kafka rail without `brokers` finds them.
const BROKERS: &str = "KAFKA_BROKERS";

/// OpenTelemetry's own variable for a collector.
const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The tree as it is written; each rail is read by its kind afterwards.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    database: DatabaseConfig,
    relay: RelayConfig,
    rails: BTreeMap<String, Value>,
    dlq: Option<DlqConfig>,
    admin: AdminConfig,
    telemetry: TelemetryConfig,
}

/// Reads `file` if given, else `trestle.toml` if there is one, and lays the environment over it.
pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
    read(file).map(|(config, _)| config)
}

/// The configuration, and what it was read from.
pub(super) fn read(file: Option<&Path>) -> Result<(Config, Figment), ConfigError> {
    let mut figment = merged(file)?;
    let written: Written = figment.extract().map_err(ConfigError::from_figment)?;
    let mut rails = BTreeMap::new();
    for name in written.rails.into_keys().map(|name| with_dots(&name)) {
        figment = with_brokers(figment, &name)?;
        let rail = read_rail(&figment, &name)?;
        rails.insert(name, rail);
    }
    let config = Config {
        database: written.database,
        relay: written.relay,
        rails,
        dlq: written.dlq,
        admin: written.admin,
        telemetry: written.telemetry,
    };
    check::check(&config)?;
    Ok((config, figment))
}

/// Weakest first.
fn merged(file: Option<&Path>) -> Result<Figment, ConfigError> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let mut figment = Figment::new();
    if std::env::var_os(PGHOST).is_some_and(|host| !host.is_empty()) {
        figment = figment.merge(Variable::new(PGHOST, &DATABASE_URL, SAYS_NOTHING));
    }
    if path.is_file() {
        figment = figment.merge(File::new(path));
    } else if file.is_some() {
        return Err(ConfigError::FileNotFound(path.to_path_buf()));
    }
    if let Some(url) = Variable::read("DATABASE_URL", &DATABASE_URL)? {
        figment = figment.merge(url);
    }
    if let Some(endpoint) = Variable::read(OTLP_ENDPOINT, &["telemetry", "otlp_endpoint"])? {
        figment = figment.merge(endpoint);
    }
    Ok(sources::environment()?.into_iter().fold(figment, Figment::merge))
}

fn with_brokers(figment: Figment, name: &str) -> Result<Figment, ConfigError> {
    let written: Result<String, _> = figment.extract_inner(&format!("{}.kind", place(name)));
    match Variable::read(BROKERS, &["rails", name, "brokers"])? {
        Some(brokers) if written.is_ok_and(|kind| kind == "kafka") => Ok(figment.join(brokers)),
        _ => Ok(figment),
    }
}

/// Where figment has the rail.
fn place(name: &str) -> String {
    format!("rails.{}", without_dots(name))
}

/// Every rail by its own kind, so that an unknown key is named with the keys of that kind.
fn read_rail(figment: &Figment, name: &str) -> Result<RailConfig, ConfigError> {
    let (key, place) = (format!("rails.{name}"), place(name));
    let kind: String = match figment.extract_inner(&format!("{place}.kind")) {
        Ok(kind) => kind,
        Err(_) => return Err(ConfigError::RailKind { key, found: None }),
    };
    match kind.as_str() {
        "kafka" => {
            figment.extract_inner(&place).map(RailConfig::Kafka).map_err(ConfigError::from_rail)
        }
        "http" => {
            figment.extract_inner(&place).map(RailConfig::Http).map_err(ConfigError::from_rail)
        }
        _ => Err(ConfigError::RailKind { key, found: Some(kind) }),
    }
}
