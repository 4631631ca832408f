//! `trestle dlq`: FAILED rows, and what an operator does about them.

mod carry_out;
mod dismiss;
mod filter;
mod list;
mod preview;
mod replay;
mod show;

use super::CliError;
use crate::config::Config;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List FAILED rows that are neither replayed nor dismissed
    List(list::Args),
    /// Show one FAILED row
    Show(show::Args),
    /// Close FAILED rows for good, all of them or none
    Dismiss(dismiss::Args),
    /// Send FAILED rows again, after a preview
    Replay(replay::Args),
}

pub(super) async fn run(command: Command, config: &Config) -> Result<(), CliError> {
    match command {
        Command::List(args) => list::run(args, config).await,
        Command::Show(args) => show::run(args, config).await,
        Command::Dismiss(args) => dismiss::run(args, config).await,
        Command::Replay(args) => replay::run(args, config).await,
    }
}
