//! `trestle completions`

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, CliError, output};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell to complete for
    shell: Shell,
}

/// Prints the script that a shell reads; it needs neither configuration nor database.
pub(super) fn run(args: &Args) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "trestle", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())
}
