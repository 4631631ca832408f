//! Writing results: tables for people, JSON for programs.

use std::io::{ErrorKind, Write};

use comfy_table::{Table, presets};
use serde::Serialize;

use super::CliError;

/// Prints a line. A reader that has seen enough (`| head`) is no failure.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(CliError::Write(error)),
        _ => Ok(()),
    }
}

pub(super) fn json(value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value).map_err(|error| CliError::Write(error.into()))?;
    line(&text)
}

pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), CliError> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    line(&table.trim_fmt())
}
