//! `trestle dlq dismiss`

use serde::Serialize;
use uuid::Uuid;

use crate::cli::act::{Act, refused};
use crate::cli::{CliError, connect_current, output};
use crate::config::Config;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The FAILED rows
    #[arg(required = true)]
    outbox_ids: Vec<Uuid>,
    #[command(flatten)]
    act: Act,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Dismissed<'a> {
    dismissed: &'a [Uuid],
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let actor = args.act.actor();
    let by = args.act.by(&actor)?;
    let mut ids = args.outbox_ids.clone();
    ids.sort_unstable();
    ids.dedup();
    connect_current(config).await?.dismiss(&ids, by).await.map_err(refused)?;
    if args.json {
        return output::document(&Dismissed { dismissed: &ids });
    }
    output::line(&format!("Dismissed {} FAILED rows.", ids.len()))
}
