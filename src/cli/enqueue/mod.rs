//! `trestle enqueue`: one row from flags, or many from newline-delimited JSON.

mod batch;
mod line;
mod lines;
mod one;
mod stream;

use std::path::PathBuf;

use uuid::Uuid;

use super::{CliError, connect};
use crate::config::Config;

const ROW_FLAGS: [&str; 8] =
    ["instruction", "participant", "key", "rail", "payload", "headers", "tenant", "not_before"];

/// Enqueuing is idempotent: the same instruction and key again returns the row that is already
/// there, so every form of this command can be repeated safely.
#[derive(Debug, clap::Args)]
#[command(after_help = "A line of the file is an object with instruction_id, participant_id, \
    idempotency_key, rail_type and payload, and optionally headers, tenant_id and not_before. \
    A bad line is reported on stderr with its number; the others are enqueued.")]
pub(super) struct Args {
    /// The payment instruction's id
    #[arg(long, value_name = "ID", required_unless_present = "file")]
    instruction: Option<String>,
    /// The participant; rows of one participant are delivered in order
    #[arg(long, value_name = "ID", required_unless_present = "file")]
    participant: Option<String>,
    /// Idempotency key, unique within the instruction
    #[arg(long, value_name = "KEY", required_unless_present = "file")]
    key: Option<String>,
    /// The rail that delivers it, as named in the configuration
    #[arg(long, value_name = "RAIL", required_unless_present = "file")]
    rail: Option<String>,
    /// The payload: JSON, or @FILE, or - for the standard input
    #[arg(long, value_name = "JSON", required_unless_present = "file", allow_hyphen_values = true)]
    payload: Option<String>,
    /// Headers to deliver with it: a JSON object
    #[arg(long, value_name = "JSON")]
    headers: Option<String>,
    /// The tenant that the participant belongs to
    #[arg(long, value_name = "UUID")]
    tenant: Option<Uuid>,
    /// Deliver no earlier than this moment, as in 2027-01-31T09:00:00Z
    #[arg(long, value_name = "RFC3339")]
    not_before: Option<String>,
    /// Read rows from this file of newline-delimited JSON, or - for the standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ROW_FLAGS)]
    file: Option<PathBuf>,
    /// Rows in one transaction
    #[arg(long, value_name = "ROWS", default_value_t = 5_000, requires = "file",
          value_parser = clap::value_parser!(u32).range(1..=50_000))]
    batch_rows: u32,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    match &args.file {
        Some(file) => {
            // Opened before connecting: a wrong path is found at once.
            let input = stream::Input::open(file)?;
            let store = connect(config).await?;
            stream::enqueue(&store, input, args.batch_rows as usize, args.json).await
        }
        None => one::enqueue(args, config).await,
    }
}
