//! `trestle repair`

use serde::Serialize;
use uuid::Uuid;

use super::act::{actor, refused};
use super::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::RepairedRow;

/// Lanes that one call repairs.
const LANES: i32 = 500;

/// No outbox has so many expired lanes that this is not enough.
const MAX_ROUNDS: u32 = 10_000;

/// The database takes 255 bytes; the rest is ours.
const ACTOR_BYTES: usize = 200;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Who does it; it is recorded [default: $USER]
    #[arg(long)]
    actor: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Repaired<'a> {
    repaired: &'a [RepairedRow],
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let actor = actor(args.actor);
    if actor.len() > ACTOR_BYTES {
        return Err(CliError::Usage(format!("--actor must have at most {ACTOR_BYTES} bytes")));
    }
    let worker_id = format!("repair:{actor}:{}", &Uuid::new_v4().simple().to_string()[..8]);
    let mut store = connect_current(config).await?;
    let mut repaired = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let rows = store.repair_leases(LANES, &worker_id).await.map_err(refused)?;
        if rows.is_empty() {
            break;
        }
        repaired.extend(rows);
    }
    show(&repaired, args.json)
}

fn show(repaired: &[RepairedRow], json: bool) -> Result<(), CliError> {
    if json {
        return output::document(&Repaired { repaired });
    }
    if repaired.is_empty() {
        return output::line("No lease has expired.");
    }
    let rows = repaired.iter().map(|row| {
        let paused = if row.lane_paused { "lane paused: it came back five times" } else { "" };
        let RepairedRow { outbox_id, participant_id, rail_type, sequence_id, .. } = row;
        let (id, number) = (outbox_id.to_string(), sequence_id.to_string());
        [id, participant_id.clone(), rail_type.clone(), number, paused.to_owned()]
    });
    output::table(["OUTBOX ID", "PARTICIPANT", "RAIL", "#", "NOTE"], rows)?;
    output::line(&format!("{} rows will be claimed again.", repaired.len()))
}
