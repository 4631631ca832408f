//! `trestle doctor`: looks at everything that a bridge needs, with its rights and no more.
//!
//! One file for each group of checks. What is gathered from a server is judged without one.

mod acls;
mod check;
mod collector;
mod database;
mod exactly_once;
mod http;
mod kafka;
mod ledger;
mod machine;
mod rights;
mod server;
mod show;

use super::CliError;
use crate::admin::spans;
use crate::config::Config;
use crate::relay;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    // What is wrong with the configuration itself is said as `trestle run` says it.
    relay::check(config)?;
    spans::check(config)?;
    let mut checks = database::checks(config).await?;
    checks.extend(kafka::checks(config).await?);
    checks.extend(exactly_once::checks(config).await?);
    checks.extend(http::checks(config).await?);
    checks.extend(collector::checks(config).await?);
    checks.extend(machine::checks(config).await);
    show::show(&checks, args.json)
}
