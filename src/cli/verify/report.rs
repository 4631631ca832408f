//! What `trestle verify` says.

use serde::Serialize;
use serde_json::{Value, json};

use super::compare::{Comparison, Counts};
use super::findings::{Example, KINDS, Kind, Tally};
use crate::cli::{CliError, output};

/// How many lanes are listed; all are counted.
const LANES: usize = 20;

/// What a line of an example has beside its indent.
const WIDTH: usize = 76;

#[derive(Serialize)]
pub(super) struct Report<'a> {
    topic: &'a str,
    rail: &'a str,
    agrees: bool,
    partitions: usize,
    records: u64,
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    wrong: Wrong,
    /// Lanes in more than one partition, between which there is no order.
    spread_lanes: usize,
    consumer: Consumer,
    lanes_with_findings: usize,
    /// Those with the most.
    lanes: Vec<Lane<'a>>,
    /// A few of each kind.
    examples: &'a [Example],
}

#[derive(Serialize)]
struct Wrong {
    missing: u64,
    duplicate: u64,
    out_of_order: u64,
    foreign: u64,
    misplaced: u64,
}

/// What a consumer gets that drops a number that is not above the last of its lane.
#[derive(Serialize)]
struct Consumer {
    takes: u64,
    drops: u64,
    /// Of those it drops: rows that it has not seen.
    loses: u64,
}

#[derive(Serialize)]
struct Lane<'a> {
    participant_id: &'a str,
    rail_type: &'a str,
    #[serde(flatten)]
    wrong: Wrong,
}

impl From<&Tally> for Wrong {
    fn from(tally: &Tally) -> Self {
        Self {
            missing: tally.of(Kind::Missing),
            duplicate: tally.of(Kind::Duplicate),
            out_of_order: tally.of(Kind::OutOfOrder),
            foreign: tally.of(Kind::Foreign),
            misplaced: tally.of(Kind::Misplaced),
        }
    }
}

impl<'a> Report<'a> {
    pub(super) fn of(rail: &'a str, comparison: &'a Comparison<'_>) -> Self {
        let findings = &comparison.findings;
        let total = findings.total;
        let (records, lanes) = (comparison.seen().records, &comparison.seen().lanes);
        let drops = total.of(Kind::Duplicate) + total.of(Kind::OutOfOrder);
        let lane = |(number, tally): (u32, Tally)| {
            let (participant_id, rail_type) = lanes.name(number);
            Lane { participant_id, rail_type, wrong: Wrong::from(&tally) }
        };
        Self {
            topic: comparison.topic,
            rail,
            agrees: total.sum() == 0,
            partitions: comparison.spans.len(),
            records,
            counts: comparison.counts,
            wrong: Wrong::from(&total),
            spread_lanes: lanes.spread(),
            consumer: Consumer {
                takes: records.saturating_sub(drops),
                drops,
                loses: total.of(Kind::OutOfOrder),
            },
            lanes_with_findings: findings.lanes(),
            lanes: findings.worst(LANES).into_iter().map(lane).collect(),
            examples: &findings.examples,
        }
    }

    /// Prints it; that the two do not agree is a failure.
    pub(super) fn show(&self, json: bool) -> Result<(), CliError> {
        if json {
            output::document(self)?;
        } else {
            output::line(&self.text())?;
        }
        if self.agrees { Ok(()) } else { Err(CliError::Disagreement) }
    }

    fn text(&self) -> String {
        let mut parts = vec![self.totals(), self.not_compared().join("\n"), self.consumer()];
        if !self.agrees {
            parts.push(self.lanes());
            parts.push(examples(self.examples));
        }
        parts.retain(|part| !part.is_empty());
        parts.join("\n\n")
    }

    fn totals(&self) -> String {
        let Self { topic, partitions, records, counts, .. } = self;
        let head = format!(
            "Topic {topic}: {records} records in {partitions} partitions.\n\
             Ledger: {} rows delivered there.",
            counts.rows
        );
        if self.agrees {
            return format!("{head} Each is there once, in order.");
        }
        let wrong = &self.wrong;
        let numbers =
            [wrong.missing, wrong.duplicate, wrong.out_of_order, wrong.foreign, wrong.misplaced];
        let rows = KINDS.iter().zip(numbers).filter(|(_, number)| *number > 0);
        let rows = rows.map(|(kind, number)| [kind.name().to_owned(), number.to_string()]);
        format!("{head}\n\n{}", output::table_text(["WRONG", "RECORDS"], rows))
    }

    fn not_compared(&self) -> Vec<String> {
        let Counts { before, after, unrecorded, archived, .. } = self.counts;
        let spread = self.spread_lanes as u64;
        let notes = [
            (before, "rows not compared: their records are before what was read"),
            (after, "rows not compared: delivered while the topic was read"),
            (unrecorded, "rows are in the topic, and their outcome is not recorded yet"),
            (archived, "rows not compared: they are older than the hot ledger"),
            (spread, "lanes are in several partitions, between which there is no order"),
        ];
        let notes = notes.into_iter().filter(|(number, _)| *number > 0);
        notes.map(|(number, note)| format!("{number} {note}")).collect()
    }

    fn consumer(&self) -> String {
        let Consumer { takes, drops, loses } = self.consumer;
        if drops == 0 {
            return String::new();
        }
        let end = match loses {
            0 => "all of them duplicates".to_owned(),
            loses => format!("{loses} OF THEM ROWS THAT IT HAS NOT SEEN"),
        };
        format!(
            "A consumer that drops numbers not above the last of their lane takes\n\
             {takes} records and drops {drops}, {end}."
        )
    }

    fn lanes(&self) -> String {
        let rows = self.lanes.iter().map(|lane| {
            let Wrong { missing, duplicate, out_of_order, foreign, misplaced } = lane.wrong;
            let numbers = [missing, duplicate, out_of_order, foreign, misplaced].map(or_dash);
            let [missing, duplicate, out_of_order, foreign, misplaced] = numbers;
            let (participant, rail) = (named(lane.participant_id), named(lane.rail_type));
            [participant, rail, missing, duplicate, out_of_order, foreign, misplaced]
        });
        let header = ["PARTICIPANT", "RAIL", "MISSING", "DUPLIC.", "DISORD.", "FOREIGN", "MISPL."];
        let mut text = output::table_text(header, rows);
        let more = self.lanes_with_findings.saturating_sub(self.lanes.len());
        if more > 0 {
            text.push_str(&format!("\nand {more} more lanes"));
        }
        text
    }
}

/// Of several topics: as a text one after the other, as JSON together.
pub(super) struct Reports<'a> {
    rail: &'a str,
    /// None for a text.
    topics: Option<Vec<Value>>,
    agrees: bool,
    any: bool,
}

impl<'a> Reports<'a> {
    pub(super) fn new(rail: &'a str, json: bool) -> Self {
        Self { rail, topics: json.then(Vec::new), agrees: true, any: false }
    }

    pub(super) fn add(&mut self, report: &Report<'_>) -> Result<(), CliError> {
        self.agrees &= report.agrees;
        match &mut self.topics {
            Some(topics) => {
                let report = serde_json::to_value(report);
                topics.push(report.map_err(|error| CliError::Write(error.into()))?);
            }
            None => {
                let gap = if self.any { "\n" } else { "" };
                output::line(&format!("{gap}{}", report.text()))?;
            }
        }
        self.any = true;
        Ok(())
    }

    pub(super) fn end(self) -> Result<(), CliError> {
        let Self { rail, topics, agrees, .. } = self;
        if let Some(topics) = topics {
            output::document(&json!({ "rail": rail, "agrees": agrees, "topics": topics }))?;
        }
        if agrees { Ok(()) } else { Err(CliError::Disagreement) }
    }
}

fn or_dash(number: u64) -> String {
    if number == 0 { "-".to_owned() } else { number.to_string() }
}

fn named(name: &str) -> String {
    if name.is_empty() { "-".to_owned() } else { name.to_owned() }
}

/// One after the other: an id and a place have to stay whole to be copied.
fn examples(examples: &[Example]) -> String {
    let mut lines = vec!["For example:".to_owned()];
    for Example { what, outbox_id, participant_id, sequence_id, place, why, .. } in examples {
        let id = outbox_id.map_or("-".to_owned(), |id| id.to_string());
        let number = sequence_id.map_or(String::new(), |number| format!(" #{number}"));
        let participant = named(participant_id);
        // A participant that is a UUID too has no room beside the id.
        let whose = format!("{} {id} {participant}{number}", what.name());
        lines.push(format!(" {}", output::wrapped(&whose, WIDTH).join("\n   ")));
        let place = place.as_deref().unwrap_or("-");
        lines.push(output::printable(&format!("   {place} {why}")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_participant_that_is_a_uuid_goes_below_the_id_of_its_row() {
        let (id, participant) = (Uuid::from_u128(1), Uuid::from_u128(2).to_string());
        let text = examples(&[Example {
            what: Kind::OutOfOrder,
            outbox_id: Some(id),
            participant_id: participant.clone(),
            rail_type: "kafka".to_owned(),
            sequence_id: Some(7),
            place: Some("payments/3@8".to_owned()),
            why: "is behind".to_owned(),
        }]);
        assert!(text.contains(&format!("{id}\n   {participant} #7\n")), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
