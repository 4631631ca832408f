//! `trestle policies`

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
}

/// One value that is not what it should be.
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
    if differences.is_empty() {
        return output::line("The policies of this configuration are in force.");
    }
    let rows = differences.into_iter().map(|difference| {
        let Difference { rail, key, in_force, configured } = difference;
        [rail, key.to_owned(), in_force, configured]
    });
    output::table(["RAIL", "POLICY", "IN FORCE", "CONFIGURED"], rows)?;
    let Some(reason) = args.reason else { return Err(CliError::OtherPolicies) };
    let mut all = in_force;
    all.extend(configured);
    let actor = act::actor(args.actor);
    let version = store.set_rail_policies(&all, &actor, &reason).await.map_err(act::refused)?;
    output::line(&format!("Version {version} is in force. Workers with other policies stop."))
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
