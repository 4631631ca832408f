//! One row from flags.

use std::io::Read;

use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::Args;
use crate::cli::{CliError, connect, output};
use crate::config::Config;
use crate::store::{Enqueued, NewRow, ServerError, StoreError};

/// The parameters of the function, and the flags that they come from.
const FLAGS: [(&str, &str); 8] = [
    ("p_instruction_id", "--instruction"),
    ("p_participant_id", "--participant"),
    ("p_idempotency_key", "--key"),
    ("p_rail_type", "--rail"),
    ("p_payload", "--payload"),
    ("p_headers", "--headers"),
    ("p_tenant_id", "--tenant"),
    ("p_not_before", "--not-before"),
];

#[derive(Serialize)]
struct Answer {
    outbox_id: Uuid,
    sequence_id: i64,
    is_new: bool,
}

pub(super) async fn enqueue(args: Args, config: &Config) -> Result<(), CliError> {
    let payload = json("--payload", read_payload(required(&args.payload, "--payload")?)?)?;
    let headers = args.headers.map(|text| json("--headers", text)).transpose()?;
    if let Some(moment) = &args.not_before {
        OffsetDateTime::parse(moment, &Rfc3339).map_err(|_| {
            CliError::Usage("--not-before must be like 2027-01-31T09:00:00Z".to_owned())
        })?;
    }
    let row = NewRow {
        instruction_id: required(&args.instruction, "--instruction")?,
        participant_id: required(&args.participant, "--participant")?,
        idempotency_key: required(&args.key, "--key")?,
        rail_type: required(&args.rail, "--rail")?,
        payload: &payload,
        headers: headers.as_deref(),
        tenant_id: args.tenant,
        not_before: args.not_before.as_deref(),
    };
    let row = connect(config).await?.enqueue(&row).await.map_err(refused)?;
    show(row, args.json)
}

/// What the database says of its parameters is said of the flags: they are what was typed.
fn refused(error: StoreError) -> CliError {
    if matches!(error, StoreError::ConnectionLost | StoreError::TimedOut(_)) {
        return CliError::EnqueueInDoubt(error);
    }
    let Some(ServerError { code, message }) = error.server() else { return error.into() };
    if !code.starts_with("P7") {
        return error.into();
    }
    let message = FLAGS
        .iter()
        .fold(message.clone(), |message, (parameter, flag)| message.replace(parameter, flag));
    let message = format!("{message} (SQLSTATE {code})");
    let is_wrong_use = ("P7101"..="P7107").contains(&code.as_str());
    if is_wrong_use { CliError::Usage(message) } else { CliError::Refused(message) }
}

fn show(row: Enqueued, json: bool) -> Result<(), CliError> {
    let Enqueued { outbox_id, sequence_id, is_new } = row;
    if json {
        return output::document(&Answer { outbox_id, sequence_id, is_new });
    }
    let age = if is_new { "new" } else { "existing" };
    output::line(&format!("outbox_id {outbox_id}, sequence_id {sequence_id}, {age}"))
}

/// clap has checked this already; it is not worth a panic should the two ever disagree.
fn required<'a>(value: &'a Option<String>, flag: &str) -> Result<&'a str, CliError> {
    value.as_deref().ok_or_else(|| CliError::Usage(format!("{flag} is required")))
}

fn read_payload(argument: &str) -> Result<String, CliError> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |source| CliError::ReadInput { what, source }
    };
    if argument == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(failed("the standard input"))?;
        return Ok(text);
    }
    match argument.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path).map_err(failed(path)),
        None => Ok(argument.to_owned()),
    }
}

/// Checks the JSON without reading its numbers: it is sent as it stands.
fn json(flag: &str, text: String) -> Result<Box<RawValue>, CliError> {
    RawValue::from_string(text.trim().to_owned()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        CliError::Usage(format!("{flag} is not valid JSON (line {line}, column {column})"))
    })
}
