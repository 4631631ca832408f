//! What a replay would do, before it does it. Pure: no server needed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::cli::output;
use crate::config::{Config, RailConfig};
use crate::store::ReplayCandidate;

/// People see so many rows; programs all.
const SHOWN_ROWS: usize = 100;
const SHOWN_PARTICIPANTS: usize = 10;

const ORDER: &str = "Order: as listed, one after the other. A row that halts its lane goes first\n\
    in it under its old number; any other gets a new number, behind what waits.";

/// The rows to replay, in order.
#[derive(Debug, Serialize)]
pub(super) struct Preview {
    pub(super) rows: Vec<PreviewRow>,
    /// By rail, as far as the rows need them.
    windows: BTreeMap<String, Window>,
}

#[derive(Debug, Serialize)]
pub(super) struct PreviewRow {
    #[serde(flatten)]
    pub(super) candidate: ReplayCandidate,
    /// Later rows of its lane were delivered, or later ones of its instruction enqueued.
    superseded: bool,
    /// The receiver may have forgotten its key: it could pay twice.
    pub(super) past_window: bool,
}

/// How long a rail's receiver remembers a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Window {
    Seconds(u64),
    /// `idempotency_ttl_seconds` is not set, or the rail has no such thing.
    NotConfigured,
    /// The rail is not in this configuration, so nobody here can tell.
    RailUnknown,
}

impl Window {
    pub(super) fn of(rail: &str, config: &Config) -> Self {
        match config.rails.get(rail) {
            None => Self::RailUnknown,
            Some(RailConfig::Http(http)) => {
                http.idempotency_ttl_seconds.map_or(Self::NotConfigured, Self::Seconds)
            }
            Some(RailConfig::Kafka(_)) => Self::NotConfigured,
        }
    }

    fn is_past(self, age_seconds: Option<i64>) -> bool {
        let age = age_seconds.and_then(|age| u64::try_from(age).ok());
        matches!((self, age), (Self::Seconds(window), Some(age)) if age > window)
    }
}

impl Preview {
    pub(super) fn new(candidates: Vec<ReplayCandidate>, window: impl Fn(&str) -> Window) -> Self {
        let windows: BTreeMap<String, Window> =
            candidates.iter().map(|row| (row.rail_type.clone(), window(&row.rail_type))).collect();
        let rows = candidates.into_iter().map(|candidate| PreviewRow {
            superseded: candidate.later_delivered || candidate.later_of_instruction > 0,
            past_window: windows
                .get(&candidate.rail_type)
                .is_some_and(|window| window.is_past(candidate.first_tried_age_seconds)),
            candidate,
        });
        Self { rows: rows.collect(), windows }
    }

    pub(super) fn past_window(&self) -> usize {
        self.rows.iter().filter(|row| row.past_window).count()
    }

    /// The table and the summary below it.
    pub(super) fn text(&self) -> String {
        let shown = self.rows.iter().take(SHOWN_ROWS).map(|row| {
            let ReplayCandidate { outbox_id, participant_id, rail_type, sequence_id, .. } =
                &row.candidate;
            let (id, number) = (outbox_id.to_string(), sequence_id.to_string());
            [id, participant_id.clone(), rail_type.clone(), number, row.notes()]
        });
        let header = ["OUTBOX ID", "PARTICIPANT", "RAIL", "#", "NOTES"];
        let mut lines = vec![output::table_text(header, shown)];
        if self.rows.len() > SHOWN_ROWS {
            lines.push(format!("… and {} more; --json shows all", self.rows.len() - SHOWN_ROWS));
        }
        lines.push(String::new());
        lines.extend(output::wrapped(&self.participants(), output::WIDTH.into()));
        lines.push(self.superseded());
        lines.extend(self.windows.iter().map(|(rail, window)| self.window(rail, *window)));
        lines.push(ORDER.to_owned());
        lines.join("\n")
    }

    fn participants(&self) -> String {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(&row.candidate.participant_id).or_default() += 1;
        }
        let named = counts.iter().take(SHOWN_PARTICIPANTS);
        let mut named: Vec<String> = named.map(|(who, n)| format!("{who} {n}")).collect();
        if counts.len() > SHOWN_PARTICIPANTS {
            named.push(format!("{} others", counts.len() - SHOWN_PARTICIPANTS));
        }
        let (rows, people) = (self.rows.len(), counts.len());
        format!("Rows: {rows}; participants: {people} ({})", named.join(", "))
    }

    fn superseded(&self) -> String {
        let count = |is: fn(&ReplayCandidate) -> bool| {
            self.rows.iter().filter(|row| is(&row.candidate)).count()
        };
        let lane = count(|row| row.later_delivered);
        let instruction = count(|row| row.later_of_instruction > 0);
        format!(
            "Superseded by a later row: {lane} in the lane (delivered), {instruction} in the \
             instruction"
        )
    }

    fn window(&self, rail: &str, window: Window) -> String {
        let past =
            self.rows.iter().filter(|row| row.past_window && row.candidate.rail_type == rail);
        match window {
            Window::Seconds(seconds) => {
                format!("Idempotency window of {rail}: {seconds} s; past it: {}", past.count())
            }
            Window::NotConfigured => format!("Idempotency window of {rail}: none is configured"),
            Window::RailUnknown => format!(
                "Idempotency window of {rail}: not known, because it is not configured here"
            ),
        }
    }

    /// The rails whose window nobody here knows.
    pub(super) fn unknown_rails(&self) -> BTreeSet<&str> {
        let unknown = self.windows.iter().filter(|(_, window)| **window == Window::RailUnknown);
        unknown.map(|(rail, _)| rail.as_str()).collect()
    }
}

impl PreviewRow {
    fn notes(&self) -> String {
        let row = &self.candidate;
        let mut notes = vec![match (row.halts_lane, row.waiting_in_lane) {
            (true, _) => "first in its lane".to_owned(),
            (false, 0) => "lane is empty".to_owned(),
            (false, waiting) => format!("behind {waiting}"),
        }];
        if row.later_delivered {
            notes.push("later row delivered".to_owned());
        }
        if row.later_of_instruction > 0 {
            notes.push(format!("{} later of its instruction", row.later_of_instruction));
        }
        if self.past_window {
            notes.push("PAST WINDOW".to_owned());
        }
        notes.join(", ")
    }
}
