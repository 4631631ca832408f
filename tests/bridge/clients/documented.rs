//! The headers that docs/consume.md names, and the schema of a dead letter.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trestle::validation::schemas::DLQ_RECORD;

use super::programs::Printed;

const PAGE: &str = include_str!("../../../docs/consume.md");

pub(super) fn in_a_record() -> BTreeSet<String> {
    names("## A Kafka record")
}

pub(super) fn in_a_dead_letter() -> BTreeSet<String> {
    names("## A dead letter")
}

/// What stands between backticks in the first column of the section's table.
fn names(title: &str) -> BTreeSet<String> {
    let (_, section) = PAGE.split_once(&format!("{title}\n")).expect(title);
    let section = section.split("\n## ").next().unwrap_or(section);
    let cells = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

pub(super) fn assert_fits_the_schema(letter: &Printed) {
    let schema = serde_json::from_str(DLQ_RECORD).unwrap();
    let value: Value = serde_json::from_str(&letter.value).unwrap();
    let record = json!({"key": letter.key, "headers": letter.headers, "value": value});
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    assert_eq!(validator.validate(&record).map_err(|error| error.to_string()), Ok(()));
}
