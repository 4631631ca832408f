//! Merges the sources of configuration.

use std::collections::BTreeMap;
use std::path::Path;

use figment::Figment;
use figment::providers::{Env, Format, Toml};
use figment::value::Value;
use serde::Deserialize;

use super::{
    AdminConfig, Config, ConfigError, DEFAULT_FILE, DatabaseConfig, DlqConfig, RailConfig,
    RelayConfig, check,
};

const PREFIX: &str = "TRESTLE_";

/// Keys whose environment variables are read as they are, because figment re-types what it reads
/// from the environment (`00123` becomes 123). Weakest name first.
const RAW_KEYS: &[(&str, &[&str])] = &[
    ("database.url", &["DATABASE_URL", "TRESTLE_DATABASE__URL"]),
    ("database.listen_url", &["TRESTLE_DATABASE__LISTEN_URL"]),
];

/// Where a Kafka rail without `brokers` finds them.
const BROKERS: &str = "KAFKA_BROKERS";

/// The tree as it is written; each rail is read by its kind afterwards.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Written {
    database: DatabaseConfig,
    relay: RelayConfig,
    rails: BTreeMap<String, Value>,
    dlq: Option<DlqConfig>,
    admin: AdminConfig,
}

/// Variables with our prefix that are not configuration keys.
const NOT_KEYS: &[&str] = &["config", "log", "failpoint"];

/// Reads `file` if given, else `trestle.toml` if there is one, and lays the environment over it.
pub fn load(file: Option<&Path>) -> Result<Config, ConfigError> {
    let path = file.unwrap_or(Path::new(DEFAULT_FILE));
    let mut figment = Figment::new();
    if path.is_file() {
        figment = figment.merge(Toml::file_exact(path));
    } else if file.is_some() {
        return Err(ConfigError::FileNotFound(path.to_path_buf()));
    }
    figment = figment.merge(environment());
    for (key, variables) in RAW_KEYS {
        for variable in *variables {
            if let Some(value) = read_raw(variable)? {
                figment = figment.merge((*key, value));
            }
        }
    }
    let written: Written = figment.extract().map_err(ConfigError::from_figment)?;
    let mut rails = BTreeMap::new();
    for name in written.rails.into_keys() {
        let rail = read_rail(&figment, &name)?;
        rails.insert(name, rail);
    }
    let config = Config {
        database: written.database,
        relay: written.relay,
        rails,
        dlq: written.dlq,
        admin: written.admin,
    };
    check::check(&config)?;
    Ok(config)
}

/// Every rail by its own kind, so that an unknown key is named with the keys of that kind.
fn read_rail(figment: &Figment, name: &str) -> Result<RailConfig, ConfigError> {
    let key = format!("rails.{name}");
    let kind: String = match figment.extract_inner(&format!("{key}.kind")) {
        Ok(kind) => kind,
        Err(_) => return Err(ConfigError::RailKind { key, found: None }),
    };
    match kind.as_str() {
        "kafka" => {
            let mut rail: super::KafkaRailConfig =
                figment.extract_inner(&key).map_err(ConfigError::from_rail)?;
            if rail.brokers.is_none() {
                rail.brokers = read_raw(BROKERS)?;
            }
            Ok(RailConfig::Kafka(rail))
        }
        "http" => figment.extract_inner(&key).map(RailConfig::Http).map_err(ConfigError::from_rail),
        _ => Err(ConfigError::RailKind { key, found: Some(kind) }),
    }
}

fn environment() -> Env {
    let ignored: Vec<String> = RAW_KEYS
        .iter()
        .flat_map(|(_, variables)| *variables)
        .filter_map(|variable| variable.strip_prefix(PREFIX))
        .flat_map(|name| [name.to_lowercase(), format!("{}_file", name.to_lowercase())])
        .chain(NOT_KEYS.iter().map(|name| (*name).to_owned()))
        .collect();
    let ignored: Vec<&str> = ignored.iter().map(String::as_str).collect();
    Env::prefixed(PREFIX).ignore(&ignored).split("__")
}

/// `NAME`, or the contents of the file that `NAME_FILE` names, as container secrets are mounted.
fn read_raw(variable: &str) -> Result<Option<String>, ConfigError> {
    if let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) {
        return match value.into_string() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(ConfigError::NotUtf8(variable.to_owned())),
        };
    }
    let file_variable = format!("{variable}_FILE");
    let Some(path) = std::env::var_os(&file_variable).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    match std::fs::read_to_string(&path) {
        Ok(value) => Ok(Some(value.trim_end().to_owned())),
        Err(source) => Err(ConfigError::SecretFile { variable: file_variable, source }),
    }
}
