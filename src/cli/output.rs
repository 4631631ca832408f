//! Writing results: tables for people, JSON for programs.

use std::io::{ErrorKind, Write};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

use super::CliError;

/// What a terminal has at least. Longer texts are wrapped, a row's id never.
pub(super) const WIDTH: u16 = 80;

/// Headings of what has to stay whole to be copied. No other column does: two UUIDs leave no room for anything else.
const IDS: [&str; 2] = ["OUTBOX ID", "REPLAYED AS"];

/// The version of every JSON document: it changes when a field goes or means another.
const DOCUMENT_VERSION: u32 = 1;

/// Numbers and ages: wrapping them would only make them hard to read.
const SHORT: usize = 7;

#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// Says something to who watches. A terminal that has gone is no reason to panic.
pub(super) fn notice(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a line. A reader that has seen enough (`| head`) is no failure.
pub(super) fn line(text: &str) -> Result<(), CliError> {
    is_read(text).map(|_| ())
}

/// Prints a line, and says whether somebody still reads.
pub(super) fn is_read(text: &str) -> Result<bool, CliError> {
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(CliError::Write(error)),
    }
}

/// A JSON object with the version of its form: the only kind that is printed.
pub(super) fn document(body: &impl Serialize) -> Result<(), CliError> {
    line(&document_text(body)?)
}

pub(super) fn document_text(body: &impl Serialize) -> Result<String, CliError> {
    let document = Document { version: DOCUMENT_VERSION, body };
    serde_json::to_string(&document).map_err(|error| CliError::Write(error.into()))
}

pub(super) fn table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), CliError> {
    line(&table_text(header, rows))
}

/// A table whose values have to stay whole, however wide it becomes.
pub(super) fn wide_table<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Result<(), CliError> {
    let rows = rows.into_iter().map(|row| row.map(|cell| printable(&cell)));
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header).add_rows(rows);
    line(&table.trim_fmt())
}

pub(super) fn table_text<const N: usize>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let rows: Vec<[String; N]> =
        rows.into_iter().map(|row| row.map(|cell| printable(&cell))).collect();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
    for (number, column) in table.column_iter_mut().enumerate() {
        let is_short = |row: &[String; N]| row[number].len() <= SHORT;
        if IDS.contains(&header[number]) || rows.iter().all(is_short) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    table.add_rows(rows);
    table.trim_fmt()
}

/// Lines of at most this width, cut at blanks, so that what has to be copied stays whole where it can.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in printable(text).split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Without control characters: what a rail or an operator wrote must not steer a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// An age for people: `59 s`, `12 min`, `3 h`, `5 d`.
pub(super) fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::{age, table_text};

    #[test]
    fn an_age_has_one_unit() {
        assert_eq!([0, 119, 120, 7_200, 172_800].map(age), ["0 s", "119 s", "2 min", "2 h", "2 d"]);
        assert_eq!(age(-1), "0 s");
    }

    #[test]
    fn a_table_fits_eighty_columns_and_keeps_ids_whole() {
        let id = "01a1e443-c8c2-7c0c-81c7-1a7144d77994";
        let text = "a reason that has many more words than would fit in what the id leaves of it";
        let row = [id.to_owned(), "participant-with-a-long-name".to_owned(), text.to_owned()];
        let table = table_text(["OUTBOX ID", "PARTICIPANT", "REASON"], [row]);
        assert!(table.contains(id), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }

    #[test]
    fn participants_that_are_uuids_leave_the_row_its_id() {
        let id = "01a1e443-c8c2-7c0c-81c7-1a7144d77994";
        let participant = "5f0c0c52-7d5f-4d27-9f0f-3a1f5f6a7b8c";
        let row = [id, participant, "kafka", "12345", "HTTP_422", "12 min"].map(str::to_owned);
        let header = ["OUTBOX ID", "PARTICIPANT", "RAIL", "#", "ERROR", "AGE"];
        let table = table_text(header, [row]);
        assert!(table.contains(id), "{table}");
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        let table = table_text(["A"], [["\u{1b}[2Jx\ny".to_owned()]]);
        assert!(!table.contains('\u{1b}') && table.contains("x y"), "{table:?}");
    }
}
