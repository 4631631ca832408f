//! Merges the sources of configuration.

use std::path::Path;

use figment::Figment;
use figment::providers::{Env, Format, Toml};

use super::{Config, ConfigError, DEFAULT_FILE};

const PREFIX: &str = "TRESTLE_";

/// Keys whose environment variables are read as they are, because figment re-types what it reads
/// from the environment (`00123` becomes 123). Weakest name first.
const RAW_KEYS: &[(&str, &[&str])] =
    &[("database.url", &["DATABASE_URL", "TRESTLE_DATABASE__URL"])];

/// Variables with our prefix that are not configuration keys.
const NOT_KEYS: &[&str] = &["config"];

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
    figment.extract().map_err(ConfigError::from_figment)
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
