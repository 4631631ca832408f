//! `trestle status`

use std::io::IsTerminal as _;
use std::time::Duration;

use super::{CliError, connect_current, lanes, output};
use crate::config::Config;
use crate::store::{Overview, RailStatus, WorkerStatus};

/// Between two pictures of `--watch`.
const REFRESH: Duration = Duration::from_secs(2);

/// Cursor home, and clear what is below it.
const CLEAR: &str = "\u{1b}[H\u{1b}[2J";

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Show it anew every two seconds, until interrupted
    #[arg(long)]
    watch: bool,
    /// How many of the lanes that wait are listed
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    lanes: i32,
    /// Print JSON; with --watch one document a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let mut store = connect_current(config).await?;
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    let clear = args.watch && !args.json && std::io::stdout().is_terminal();
    loop {
        let overview = store.overview(args.lanes).await?;
        let text = if args.json {
            output::document_text(&overview)?
        } else {
            picture(&overview, args.lanes)
        };
        let is_read = output::is_read(&format!("{}{text}", if clear { CLEAR } else { "" }))?;
        if !args.watch || !is_read {
            return Ok(());
        }
        tokio::select! {
            _ = &mut interrupted => return Ok(()),
            () = tokio::time::sleep(REFRESH) => {}
        }
    }
}

fn picture(overview: &Overview, lanes_asked: i32) -> String {
    let mut parts = vec![totals(overview)];
    if !overview.rails.is_empty() {
        parts.push(rails(&overview.rails));
    }
    let waiting = &overview.waiting_lanes;
    if !waiting.is_empty() {
        let more = usize::try_from(lanes_asked).is_ok_and(|asked| waiting.len() >= asked);
        let heading = if more { "The first lanes that wait:" } else { "Lanes that wait:" };
        parts.push(format!("{heading}\n{}", lanes::table(waiting)));
    }
    if !overview.workers.is_empty() {
        parts.push(workers(&overview.workers));
    }
    parts.join("\n\n")
}

fn totals(overview: &Overview) -> String {
    let Overview { pending_depth, dlq_depth, expired_leases, .. } = overview;
    let about = if overview.depth_is_exact { "" } else { "about " };
    let oldest = overview.oldest_pending_age_seconds;
    let oldest = oldest.map(|age| format!(", the oldest {}", output::age(age))).unwrap_or_default();
    let mut line = format!("{about}{pending_depth} pending{oldest}; {dlq_depth} FAILED are open");
    if *expired_leases > 0 {
        line.push_str(&format!("; {expired_leases} lanes with an expired lease"));
    }
    line
}

fn rails(rails: &[RailStatus]) -> String {
    let rows = rails.iter().map(|rail| {
        [
            rail.rail_type.clone(),
            rail.pending.to_string(),
            rail.due.to_string(),
            rail.leased.to_string(),
            rail.lease_expired.to_string(),
            rail.failed.to_string(),
            rail.oldest_age_seconds.map_or("-".to_owned(), output::age),
        ]
    });
    output::table_text(["RAIL", "PENDING", "DUE", "LEASED", "EXPIRED", "FAILED", "OLDEST"], rows)
}

fn workers(workers: &[WorkerStatus]) -> String {
    let rows = workers.iter().map(|worker| {
        let WorkerStatus { worker_id, rail_types, leased_lanes, .. } = worker;
        let ends = match worker.first_expiry_seconds {
            Some(left) if left > 0 => format!("in {}", output::age(left)),
            Some(_) => "expired".to_owned(),
            None => "-".to_owned(),
        };
        [worker_id.clone(), rail_types.clone(), seen(worker), leased_lanes.to_string(), ends]
    });
    output::table_text(["WORKER", "RAILS", "SEEN", "LANES", "LEASE ENDS"], rows)
}

fn seen(worker: &WorkerStatus) -> String {
    match worker.seen_seconds_ago {
        Some(_) if worker.live => "live".to_owned(),
        Some(seconds) => format!("{} ago", output::age(seconds)),
        None => "never".to_owned(),
    }
}
