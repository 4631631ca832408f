//! `trestle retention`

use serde::Serialize;

use super::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::UpkeepRow;

/// A round handles a few partitions; no ledger has so many that this is not enough.
const MAX_ROUNDS: u32 = 1_000;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Upkeep<'a> {
    done: &'a [UpkeepRow],
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let store = connect_current(config).await?;
    let mut done = Vec::new();
    let mut finished = false;
    for _ in 0..MAX_ROUNDS {
        let rows = store.run_upkeep().await?;
        finished = !rows.iter().any(UpkeepRow::asks_for_more);
        done.extend(rows.into_iter().filter(|row| !row.asks_for_more()));
        if finished {
            break;
        }
    }
    show(&done, args.json)?;
    if finished { Ok(()) } else { Err(CliError::UpkeepUnfinished(MAX_ROUNDS)) }
}

fn show(done: &[UpkeepRow], json: bool) -> Result<(), CliError> {
    if json {
        return output::document(&Upkeep { done });
    }
    if done.is_empty() {
        return output::line("Nothing to do.");
    }
    let rows = done.iter().map(|row| {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        [row.action.clone(), text(&row.partition_name), text(&row.detail)]
    });
    output::table(["ACTION", "PARTITION", "DETAIL"], rows)
}
