//! `trestle lanes`

use serde::Serialize;

use super::act::{Act, refused};
use super::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::{LaneFilter, LaneName, LaneStatus};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Show the lanes that wait, and why
    List(List),
    /// Stop a lane: rows under way finish, nothing new is claimed
    Pause(Lane),
    /// Let a paused lane go on
    Resume(Lane),
    /// Take the head out of a lane as FAILED, or let a halted lane go on past its FAILED row
    Skip(Lane),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only this participant's lanes, also those that do not wait
    #[arg(long)]
    participant: Option<String>,
    /// Only this rail's lanes
    #[arg(long)]
    rail: Option<String>,
    /// Also lanes that are due or at work
    #[arg(long)]
    all: bool,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    limit: i32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Lane {
    /// The participant
    participant: String,
    /// The rail
    rail: String,
    #[command(flatten)]
    act: Act,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy)]
enum Change {
    Pause,
    Resume,
    Skip,
}

#[derive(Serialize)]
struct Lanes<'a> {
    lanes: &'a [LaneStatus],
    /// There may be more than the limit lets through.
    truncated: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    participant_id: &'a str,
    rail_type: &'a str,
    done: &'a str,
    skipped_outbox_id: Option<uuid::Uuid>,
}

pub(super) async fn run(command: Command, config: &Config) -> Result<(), CliError> {
    match command {
        Command::List(args) => list(args, config).await,
        Command::Pause(args) => change(args, Change::Pause, config).await,
        Command::Resume(args) => change(args, Change::Resume, config).await,
        Command::Skip(args) => change(args, Change::Skip, config).await,
    }
}

async fn list(args: List, config: &Config) -> Result<(), CliError> {
    let filter = LaneFilter {
        participant_id: args.participant.as_deref(),
        rail_type: args.rail.as_deref(),
        waiting_only: !args.all && args.participant.is_none(),
        limit: args.limit,
    };
    let lanes = connect_current(config).await?.lanes(&filter).await?;
    let truncated = usize::try_from(args.limit).is_ok_and(|limit| lanes.len() >= limit);
    if args.json {
        return output::document(&Lanes { lanes: &lanes, truncated });
    }
    if lanes.is_empty() {
        return output::line(if filter.waiting_only { "No lane waits." } else { "No such lane." });
    }
    output::line(&table(&lanes))?;
    if truncated {
        output::line(&format!("There may be more than these {}: see --limit.", args.limit))?;
    }
    Ok(())
}

async fn change(args: Lane, change: Change, config: &Config) -> Result<(), CliError> {
    let actor = args.act.actor();
    let by = args.act.by(&actor)?;
    let lane = LaneName { participant_id: &args.participant, rail_type: &args.rail };
    let mut store = connect_current(config).await?;
    let (done, result) = match change {
        Change::Pause => ("paused", store.pause_lane(&lane, by).await.map(|()| None)),
        Change::Resume => ("resumed", store.resume_lane(&lane, by).await.map(|()| None)),
        Change::Skip => ("skipped", store.skip_lane_head(&lane, by).await.map(Some)),
    };
    let skipped_outbox_id = result.map_err(refused)?;
    let Lane { participant, rail, json, .. } = &args;
    if *json {
        let (participant_id, rail_type) = (participant, rail);
        return output::document(&Done { participant_id, rail_type, done, skipped_outbox_id });
    }
    output::line(&match skipped_outbox_id {
        None => format!("The lane of {participant} on {rail} is {done}."),
        Some(id) => format!("Skipped {id}: the lane of {participant} on {rail} goes on."),
    })
}

/// The lanes as a table; also a part of `trestle status`.
pub(super) fn table(lanes: &[LaneStatus]) -> String {
    let rows = lanes.iter().map(|lane| {
        let LaneStatus { participant_id, rail_type, state, pending_rows, .. } = lane;
        [
            participant_id.clone(),
            rail_type.clone(),
            pending_rows.to_string(),
            state.clone(),
            why(lane),
        ]
    });
    output::table_text(["PARTICIPANT", "RAIL", "ROWS", "STATE", "WHY"], rows)
}

/// What a lane waits for.
fn why(lane: &LaneStatus) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let due = lane.due_at.map(|at| at.to_string()).unwrap_or_default();
    match (lane.state.as_str(), &lane.halted_by, &lane.head_error_code) {
        ("halted", Some(id), _) => format!("for FAILED {id}: replay or dismiss it, or skip"),
        ("paused", ..) => format!("by {}: {}", text(&lane.paused_by), text(&lane.paused_reason)),
        ("lease expired", ..) => format!("repair: {} is gone", text(&lane.worker_id)),
        ("delayed", _, Some(code)) => {
            format!("{code} at attempt {}, again at {due}", lane.head_attempts.unwrap_or(0))
        }
        ("delayed", ..) => format!("not before {due}"),
        ("leased", ..) => format!("at work: {}", text(&lane.worker_id)),
        _ => String::new(),
    }
}
