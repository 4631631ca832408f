//! `trestle dlq show`

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::cli::{CliError, connect_current, output};
use crate::config::Config;
use crate::store::{FailureFilter, FailureStatus};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// The FAILED row
    outbox_id: Uuid,
    /// Also its payload and headers, which may be confidential
    #[arg(long)]
    payload: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    failure: &'a FailureStatus,
    #[serde(flatten)]
    content: Option<Content>,
}

/// As PostgreSQL prints them: a long amount must not pass through a float.
#[derive(Serialize)]
struct Content {
    payload: Box<RawValue>,
    headers: Box<RawValue>,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let store = connect_current(config).await?;
    let id = [args.outbox_id];
    let filter =
        FailureFilter { resolved_too: true, outbox_ids: Some(&id), limit: 1, ..Default::default() };
    let failures = store.failures(&filter).await?;
    let Some(failure) = failures.first() else {
        return Err(CliError::Refused(format!(
            "{} is not a FAILED row: `trestle dlq list --all` shows those, `trestle trace {}` what \
             is known of it",
            args.outbox_id, args.outbox_id
        )));
    };
    let content = match args.payload {
        true => store.failed_payload(args.outbox_id).await?.map(content).transpose()?,
        false => None,
    };
    if args.json {
        return output::document(&Shown { failure, content });
    }
    show(failure)?;
    match content {
        None => Ok(()),
        Some(Content { payload, headers }) => {
            output::line(&format!("\npayload\n{payload}\nheaders\n{headers}"))
        }
    }
}

fn content((payload, headers): (String, String)) -> Result<Content, CliError> {
    let raw = |text: String| RawValue::from_string(text).map_err(|e| CliError::Write(e.into()));
    Ok(Content { payload: raw(payload)?, headers: raw(headers)? })
}

fn show(failure: &FailureStatus) -> Result<(), CliError> {
    let some = |value: &Option<String>| value.clone();
    let is = |fact: bool, text: &str| fact.then(|| text.to_owned());
    let resolved = failure.resolution.as_ref().map(|resolution| {
        let by = failure.resolved_by.as_deref().unwrap_or_default();
        let at = failure.resolved_at.map(|at| at.to_string()).unwrap_or_default();
        format!("{resolution} by {by} at {at}")
    });
    let facts = [
        ("outbox_id", Some(failure.outbox_id.to_string())),
        ("tenant", failure.tenant_id.map(|id| id.to_string())),
        ("instruction", some(&failure.instruction_id)),
        ("key", some(&failure.idempotency_key)),
        ("participant", Some(failure.participant_id.clone())),
        ("number", Some(failure.sequence_id.to_string())),
        ("rail", Some(failure.rail_type.clone())),
        ("enqueued", failure.created_at.map(|at| at.to_string())),
        ("failed", Some(failure.failed_at.to_string())),
        ("attempts", failure.attempts.map(|attempts| attempts.to_string())),
        ("error", some(&failure.error_code)),
        ("message", some(&failure.error_message)),
        ("rail code", some(&failure.rail_code)),
        ("receipt", some(&failure.rail_reference)),
        ("replay of", failure.replay_of.map(|id| id.to_string())),
        ("lane", is(failure.halts_lane, "halted until this row is replayed, dismissed or skipped")),
        ("dead letter", is(failure.dead_letter_waits, "not delivered yet")),
        ("resolved", resolved),
        ("reason", some(&failure.resolved_reason)),
        ("replayed as", failure.replay_outbox_id.map(|id| id.to_string())),
    ];
    let known = facts.into_iter().filter_map(|(name, value)| Some([name.to_owned(), value?]));
    output::table(["FIELD", "VALUE"], known)
}
