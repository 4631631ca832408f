//! `trestle dlq list`

use serde::Serialize;

use super::filter::Filter;
use crate::cli::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::{FailureFilter, FailureStatus};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Also rows that were replayed or dismissed
    #[arg(long)]
    all: bool,
    /// At most so many, the oldest
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Failures<'a> {
    failures: &'a [FailureStatus],
    /// There may be more than the limit lets through.
    truncated: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let filter = args.filter.open(i64::from(args.limit));
    let filter = FailureFilter { resolved_too: args.all, ..filter };
    let failures = connect_current(config).await?.failures(&filter).await?;
    let truncated = failures.len() >= usize::from(args.limit);
    if args.json {
        return output::document(&Failures { failures: &failures, truncated });
    }
    if failures.is_empty() {
        return output::line("No FAILED row is open.");
    }
    output::line(&table(&failures))?;
    if truncated {
        output::line(&format!("There may be more than these {}: see --limit.", args.limit))?;
    }
    Ok(())
}

fn table(failures: &[FailureStatus]) -> String {
    let rows = failures.iter().map(|failure| {
        let state = match failure.resolution.as_deref() {
            Some(resolution) => resolution.to_lowercase(),
            None => failure.error_code.clone().unwrap_or_default(),
        };
        let FailureStatus { outbox_id, participant_id, rail_type, sequence_id, .. } = failure;
        let age = output::age(failure.age_seconds);
        let (id, number) = (outbox_id.to_string(), sequence_id.to_string());
        [id, participant_id.clone(), rail_type.clone(), number, state, age]
    });
    output::table_text(["OUTBOX ID", "PARTICIPANT", "RAIL", "#", "ERROR", "AGE"], rows)
}
