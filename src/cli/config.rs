//! `trestle config`

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{CliError, check_database, output};
use crate::admin::spans;
use crate::config::{self, Config, DatabaseConfig, Entry, Origin, RailConfig};
use crate::relay;
use crate::store::target;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown {
    values: Vec<Entry>,
}

/// Connects to nothing. What is wrong is reported as by every other command, and what `trestle run` would refuse too.
pub(super) fn run(args: &Args, file: Option<&Path>) -> Result<(), CliError> {
    let (config, mut entries) = config::explain(file)?;
    check_database(&config)?;
    let config = without_brokers(config);
    relay::check(&config)?;
    spans::check(&config)?;
    let DatabaseConfig { url, listen_url } = &config.database;
    for (key, url) in [("database.url", url), ("database.listen_url", listen_url)] {
        let entry = entries.iter_mut().find(|entry| entry.key == key);
        if let (Some(entry), Some(url)) = (entry, url) {
            entry.value = format!("postgres://[redacted]@{}", target(url)?).into();
        }
    }
    if args.json {
        return output::document(&Shown { values: entries });
    }
    let rows =
        entries.into_iter().map(|entry| [entry.key, text(&entry.value), from(&entry.origin)]);
    output::wide_table(["KEY", "VALUE", "FROM"], rows)
}

/// What librdkafka refuses it says only when a client is made, and that would connect.
fn without_brokers(mut config: Config) -> Config {
    for rail in config.rails.values_mut() {
        if let RailConfig::Kafka(kafka) = rail {
            kafka.brokers = None;
        }
    }
    config
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn from(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File(path) => path.display().to_string(),
        Origin::Environment(name) => name.clone(),
    }
}
