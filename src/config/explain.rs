//! The configuration in force, and where each value comes from.

use std::path::{Path, PathBuf};

use figment::value::Value as Written;
use figment::{Figment, Source};
use serde::Serialize;
use serde_json::Value;

use super::load::read;
use super::sources::without_dots;
use super::{Config, ConfigError};

/// Where a value comes from.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "from", content = "name")]
pub enum Origin {
    Default,
    File(PathBuf),
    /// The name of a variable.
    Environment(String),
}

/// A key with its value, secrets redacted.
#[derive(Debug, Serialize)]
pub struct Entry {
    pub key: String,
    pub value: Value,
    #[serde(flatten)]
    pub origin: Origin,
}

/// The configuration as [`super::load`] reads it, and every key of it.
pub fn explain(file: Option<&Path>) -> Result<(Config, Vec<Entry>), ConfigError> {
    let (config, figment) = read(file)?;
    let shown = serde_json::to_value(&config).map_err(|error| ConfigError::Invalid {
        place: "shown".into(),
        message: error.to_string(),
    })?;
    let written = figment.find_value("").map_err(ConfigError::from_figment)?;
    let mut entries = Vec::new();
    collect(&figment, &[], shown, Some(&written), &mut entries);
    Ok((config, entries))
}

/// Walks what is in force, and what is written beside it.
fn collect(
    figment: &Figment,
    path: &[&str],
    shown: Value,
    written: Option<&Written>,
    entries: &mut Vec<Entry>,
) {
    let Value::Object(table) = shown else {
        let origin = written.map_or(Origin::Default, |written| origin(figment, written));
        entries.push(Entry { key: path.join("."), value: shown, origin });
        return;
    };
    for (name, value) in table {
        let below = written.and_then(Written::as_dict).and_then(|dict| {
            if path == ["rails"] { dict.get(&without_dots(&name)) } else { dict.get(&name) }
        });
        // A whole table that nobody configured has nothing to show.
        if !(path.is_empty() && value.is_null()) {
            collect(figment, &[path, &[&name]].concat(), value, below, entries);
        }
    }
}

fn origin(figment: &Figment, written: &Written) -> Origin {
    match figment.get_metadata(written.tag()) {
        None => Origin::Default,
        Some(metadata) => match &metadata.source {
            Some(Source::File(path)) => Origin::File(path.clone()),
            _ => Origin::Environment(metadata.name.clone().into_owned()),
        },
    }
}
