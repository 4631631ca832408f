//! `trestle policies`

use serde::Serialize;
use serde_json::{Map, Value};

use super::{CliError, act, connect_current, output};
use crate::config::Config;
use crate::relay;

/// What a rail has that was never named, as the database fills it in.
const DEFAULTS: [(&str, &str); 5] = [
    ("ordering", "strict"),
    ("on_failed", "skip"),
    ("delivery", "idempotent"),
    ("dlq", "topic"),
    ("shards", "16"),
];

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Put the policies of this configuration in force, besides those of rails it does not name
    #[arg(long, requires = "reason")]
    apply: bool,
    /// Why they change; it is recorded
    #[arg(long, requires = "apply")]
    reason: Option<String>,
    /// Who changes them; it is recorded [default: $USER]
    #[arg(long, requires = "apply")]
    actor: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Compared<'a> {
    differences: &'a [Difference],
    /// The version that was put in force, if one was.
    applied_version: Option<i32>,
}

/// One value that is not what it should be.
#[derive(Serialize)]
pub(super) struct Difference {
    pub(super) rail: String,
    pub(super) key: &'static str,
    pub(super) in_force: String,
    pub(super) configured: String,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let store = connect_current(config).await?;
    let in_force = store.rail_policies().await?;
    let Value::Object(configured) = relay::policies(config) else { return Ok(()) };
    let differences = differences(&in_force, &configured);
    if !args.json {
        show(&differences)?;
    }
    let applied_version = match &args.reason {
        Some(reason) if !differences.is_empty() => {
            // The configured ones replace those of the same rail.
            let all = in_force.into_iter().chain(configured).collect();
            let actor = act::actor(args.actor);
            Some(store.set_rail_policies(&all, &actor, reason).await.map_err(act::refused)?)
        }
        _ => None,
    };
    if args.json {
        output::document(&Compared { differences: &differences, applied_version })?;
    } else if let Some(version) = applied_version {
        output::line(&format!("Version {version} is in force. Workers with other policies stop."))?;
    }
    let agree = differences.is_empty() || applied_version.is_some();
    if agree { Ok(()) } else { Err(CliError::OtherPolicies) }
}

fn show(differences: &[Difference]) -> Result<(), CliError> {
    if differences.is_empty() {
        return output::line("The policies of this configuration are in force.");
    }
    let rows = differences.iter().map(|difference| {
        let Difference { rail, key, in_force, configured } = difference;
        [rail.clone(), (*key).to_owned(), in_force.clone(), configured.clone()]
    });
    output::table(["RAIL", "POLICY", "IN FORCE", "CONFIGURED"], rows)
}

pub(super) fn differences(
    in_force: &Map<String, Value>,
    configured: &Map<String, Value>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    for (rail, policy) in configured {
        for (key, default) in DEFAULTS {
            let text = |policy: Option<&Value>| match policy.map(|policy| &policy[key]) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Number(number)) => number.to_string(),
                _ => default.to_owned(),
            };
            let (now, wanted) = (text(in_force.get(rail)), text(Some(policy)));
            if now != wanted {
                found.push(Difference {
                    rail: rail.clone(),
                    key,
                    in_force: now,
                    configured: wanted,
                });
            }
        }
    }
    found
}
