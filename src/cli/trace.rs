//! `trestle trace`

use serde::Serialize;
use uuid::Uuid;

use super::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::{Store, TraceEntry};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// An outbox_id, an instruction_id or a participant_id
    id: String,
    /// What the ID is [default: the first of these that knows it]
    #[arg(long = "as", value_name = "KIND")]
    kind: Option<Kind>,
    /// At most so many entries, the newest
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(i32).range(1..=10_000))]
    limit: i32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Outbox,
    Instruction,
    Participant,
}

#[derive(Serialize)]
struct Trace<'a> {
    kind: Kind,
    id: &'a str,
    /// There may be older entries than the limit lets through.
    truncated: bool,
    entries: &'a [TraceEntry],
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let store = connect_current(config).await?;
    let Some((kind, entries)) = find(&store, &args).await? else {
        return Err(CliError::Refused(format!(
            "nothing is known of {}: it must be an outbox_id, instruction_id or participant_id. \
             What is older than the ledger's retention is in schema outbox_archive",
            output::printable(&args.id)
        )));
    };
    let truncated = usize::try_from(args.limit).is_ok_and(|limit| entries.len() >= limit);
    if args.json {
        return output::document(&Trace { kind, id: &args.id, truncated, entries: &entries });
    }
    show(&entries)?;
    if truncated {
        output::line(&format!("There may be more than these {}: see --limit.", args.limit))?;
    }
    Ok(())
}

async fn find(store: &Store, args: &Args) -> Result<Option<(Kind, Vec<TraceEntry>)>, CliError> {
    let all = [Kind::Outbox, Kind::Instruction, Kind::Participant];
    let kinds = args.kind.map_or(all.to_vec(), |kind| vec![kind]);
    for kind in kinds {
        let entries = store.trace(kind.name(), &args.id, args.limit).await?;
        if !entries.is_empty() {
            return Ok(Some((kind, entries)));
        }
    }
    Ok(None)
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Outbox => "outbox",
            Self::Instruction => "instruction",
            Self::Participant => "participant",
        }
    }
}

/// Ids are long, so each row gets a letter or two: first who is who, then what happened.
fn show(entries: &[TraceEntry]) -> Result<(), CliError> {
    let mut rows: Vec<&TraceEntry> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.sequence_id.is_some()) {
        if rows.iter().all(|row| row.outbox_id != entry.outbox_id) {
            rows.push(entry);
        }
    }
    let known = rows.iter().enumerate().map(|(n, row)| {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let id = row.outbox_id.map(|id| id.to_string()).unwrap_or_default();
        let number = row.sequence_id.map(|number| number.to_string()).unwrap_or_default();
        [label(n), id, text(&row.participant_id), text(&row.rail_type), number]
    });
    output::table(["ROW", "OUTBOX ID", "PARTICIPANT", "RAIL", "#"], known)?;
    output::line("")?;
    let name = |id: Option<Uuid>| {
        let place = id.and_then(|id| rows.iter().position(|row| row.outbox_id == Some(id)));
        place.map(label).unwrap_or_default()
    };
    let lines = entries.iter().map(|entry| {
        let what = match entry.attempt_no {
            Some(number) => format!("{} ({number})", entry.what),
            None => entry.what.clone(),
        };
        let detail = detail(entry, &name(entry.related_id));
        [entry.occurred_at.to_string(), name(entry.outbox_id), what, detail]
    });
    output::table(["TIME (UTC)", "ROW", "WHAT", "DETAIL"], lines)
}

fn label(place: usize) -> String {
    format!("r{}", place + 1)
}

fn detail(entry: &TraceEntry, related: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend((!related.is_empty()).then(|| match entry.what.as_str() {
        "failed replayed" => format!("as {related}"),
        _ => format!("of {related}"),
    }));
    parts.extend(entry.error_code.clone());
    parts.extend(entry.rail_code.as_ref().map(|code| format!("rail code {code}")));
    parts.extend(entry.rail_reference.as_ref().map(|reference| format!("receipt {reference}")));
    parts.extend(entry.latency_ms.map(|latency| format!("{latency} ms")));
    parts.extend(entry.actor.as_ref().map(|actor| format!("by {actor}")));
    parts.extend(entry.detail.clone());
    parts.join(", ")
}
