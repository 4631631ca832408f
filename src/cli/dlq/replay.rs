//! `trestle dlq replay`: does what its preview showed, and nothing that came in between.

use std::io::{IsTerminal as _, Write as _};

use serde::Serialize;
use uuid::Uuid;

use super::carry_out::{Done, Progress, Refused, replay_all};
use super::filter::Filter;
use super::preview::{Preview, Window};
use crate::cli::act::Act;
use crate::cli::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::{ReplayCandidate, Store};

/// What one command replays at most: a preview of more is read by nobody.
const MAX_ROWS: usize = 10_000;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The FAILED rows; or use a filter
    outbox_ids: Vec<Uuid>,
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    act: Act,
    /// At most so many rows in a second
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rate: Option<u32>,
    /// Replay without asking; needed where nobody can be asked
    #[arg(long, conflicts_with = "preview")]
    yes: bool,
    /// Show what would be replayed, and do nothing
    #[arg(long)]
    preview: bool,
    /// Also rows whose key the receiver may have forgotten: they could be paid twice
    #[arg(long)]
    past_window: bool,
    /// Print JSON; needs --yes or --preview
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    preview: &'a Preview,
    replayed: &'a [Done],
    refused: &'a [Refused],
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    check(&args)?;
    let actor = args.act.actor();
    let by = args.act.by(&actor)?;
    let mut store = connect_current(config).await?;
    let preview = Preview::new(candidates(&store, &args).await?, |rail| Window::of(rail, config));
    if preview.rows.is_empty() && !args.json {
        return output::line("Nothing to replay: no open FAILED row matches.");
    }
    if !args.json {
        output::line(&preview.text())?;
    }
    let mut progress = Progress::default();
    let result = match args.preview {
        true => Ok(()),
        false => match permitted(&args, &preview)? {
            true => replay_all(&mut store, &preview.rows, by, args.rate, &mut progress).await,
            false => return output::line("Nothing was replayed."),
        },
    };
    report(&args, &preview, &progress)?;
    result?;
    match progress.refused.len() {
        0 => Ok(()),
        count => Err(CliError::Refused(format!("{count} rows were not replayed"))),
    }
}

fn check(args: &Args) -> Result<(), CliError> {
    let wrong = |text: &str| Err(CliError::Usage(text.to_owned()));
    match (args.outbox_ids.is_empty(), args.filter.is_empty()) {
        (true, true) => {
            return wrong(
                "say which rows: their ids, or --rail, --participant, --error-code or --since",
            );
        }
        (false, false) => return wrong("rows are chosen by their ids or by a filter, not by both"),
        _ => {}
    }
    if args.json && !args.yes && !args.preview {
        return wrong("--json asks no questions: add --yes or --preview");
    }
    Ok(())
}

async fn candidates(store: &Store, args: &Args) -> Result<Vec<ReplayCandidate>, CliError> {
    if !args.outbox_ids.is_empty() {
        return by_id(store, &args.outbox_ids).await;
    }
    let limit = i64::try_from(MAX_ROWS + 1).unwrap_or(i64::MAX);
    let failures = store.failures(&args.filter.open(limit)).await?;
    if failures.len() > MAX_ROWS {
        return Err(CliError::Refused(format!(
            "more than {MAX_ROWS} rows match: narrow the filter; nothing was replayed"
        )));
    }
    let ids: Vec<Uuid> = failures.iter().map(|failure| failure.outbox_id).collect();
    let mut candidates = store.preview_replay(&ids).await?;
    candidates.retain(|row| row.resolution.is_none());
    Ok(candidates)
}

/// Each of them, or an error: who names a row means it.
async fn by_id(store: &Store, ids: &[Uuid]) -> Result<Vec<ReplayCandidate>, CliError> {
    let candidates = store.preview_replay(ids).await?;
    for id in ids {
        let why = match candidates.iter().find(|row| row.outbox_id == *id) {
            None => "is not a FAILED row".to_owned(),
            Some(ReplayCandidate { resolution: Some(resolution), .. }) => {
                format!("was already {resolution}")
            }
            Some(_) => continue,
        };
        return Err(CliError::Refused(format!(
            "{id} {why}; nothing was replayed. `trestle dlq list` shows what can be"
        )));
    }
    Ok(candidates)
}

fn permitted(args: &Args, preview: &Preview) -> Result<bool, CliError> {
    let past = preview.past_window();
    if past > 0 && !args.past_window {
        return Err(CliError::Refused(format!(
            "{past} rows are past the idempotency window of their rail, so the receiver may have \
             forgotten their keys and could pay twice; nothing was replayed. Ask the receiver, \
             then leave them out or add --past-window"
        )));
    }
    if args.yes {
        return Ok(true);
    }
    // Who cannot see the preview cannot agree to it.
    if !(std::io::stdin().is_terminal() && std::io::stdout().is_terminal()) {
        return Err(CliError::Usage(
            "nobody can be asked here, so nothing was replayed: add --yes".to_owned(),
        ));
    }
    ask(preview)
}

fn ask(preview: &Preview) -> Result<bool, CliError> {
    let failed = |source| CliError::ReadInput { what: "the answer".to_owned(), source };
    for rail in preview.unknown_rails() {
        output::notice(&format!(
            "Whether {rail}'s receiver still knows these keys is for you to make sure."
        ));
    }
    write!(std::io::stderr(), "Replay these {} rows? [y/N] ", preview.rows.len())
        .map_err(failed)?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(failed)?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn report(args: &Args, preview: &Preview, progress: &Progress) -> Result<(), CliError> {
    let Progress { replayed, refused } = progress;
    if args.json {
        return output::document(&Report { preview, replayed, refused });
    }
    if args.preview {
        return output::line("This was the preview: nothing was replayed.");
    }
    for Refused { outbox_id, why } in refused {
        output::notice(&format!("{outbox_id} was not replayed: {}", output::printable(why)));
    }
    let rows = replayed.iter().map(|done| {
        let Done { participant_id, rail_type, replayed, .. } = done;
        let (id, number) = (replayed.outbox_id.to_string(), replayed.sequence_id.to_string());
        [id, participant_id.clone(), rail_type.clone(), number]
    });
    if !replayed.is_empty() {
        output::line("")?;
        output::table(["REPLAYED AS", "PARTICIPANT", "RAIL", "#"], rows)?;
    }
    output::line(&format!("Replayed {} of {} rows.", replayed.len(), preview.rows.len()))
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(["y\n", "Y", " yes \n"].into_iter().all(is_yes));
        assert!(!["", "\n", "n\n", "yes please", "yy"].into_iter().any(is_yes));
    }
}
