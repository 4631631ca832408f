//! What does not agree: counted exactly, by lane, with a few examples of each kind.

use std::collections::HashMap;

use serde::Serialize;
use uuid::Uuid;

use super::lanes::Lanes;

/// How many of each kind are shown; all are counted.
const EXAMPLES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// DISPATCHED in the ledger, and not in the topic.
    Missing,
    /// A row that is in the topic more than once: each time but the first.
    Duplicate,
    /// A row whose first record comes after a later one of its lane.
    OutOfOrder,
    /// A record that the ledger does not have as delivered here.
    Foreign,
    /// The ledger says that the record is somewhere else in the topic.
    Misplaced,
}

pub(super) const KINDS: [Kind; 5] =
    [Kind::Missing, Kind::Duplicate, Kind::OutOfOrder, Kind::Foreign, Kind::Misplaced];

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Duplicate => "duplicate",
            Self::OutOfOrder => "out of order",
            Self::Foreign => "foreign",
            Self::Misplaced => "misplaced",
        }
    }
}

/// How many of each kind, in the order of [`KINDS`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tally([u64; KINDS.len()]);

impl Tally {
    pub(super) fn of(&self, kind: Kind) -> u64 {
        self.0[kind as usize]
    }

    pub(super) fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// One thing that is wrong.
#[derive(Debug, Serialize)]
pub(super) struct Example {
    pub(super) what: Kind,
    pub(super) outbox_id: Option<Uuid>,
    pub(super) participant_id: String,
    pub(super) rail_type: String,
    pub(super) sequence_id: Option<i64>,
    pub(super) place: Option<String>,
    pub(super) why: String,
}

/// What is known of one thing that is wrong.
#[derive(Debug, Default)]
pub(super) struct Finding {
    pub(super) outbox_id: Option<Uuid>,
    pub(super) sequence_id: Option<i64>,
    pub(super) place: Option<String>,
    pub(super) why: String,
}

#[derive(Default)]
pub(super) struct Findings {
    pub(super) total: Tally,
    by_lane: HashMap<u32, Tally>,
    pub(super) examples: Vec<Example>,
}

impl Findings {
    /// Counts it, and asks what is known of it only where it is shown.
    pub(super) fn add(
        &mut self,
        kind: Kind,
        lanes: &Lanes,
        lane: u32,
        finding: impl FnOnce() -> Finding,
    ) {
        self.total.0[kind as usize] += 1;
        self.by_lane.entry(lane).or_default().0[kind as usize] += 1;
        if self.total.of(kind) > EXAMPLES as u64 {
            return;
        }
        let (participant_id, rail_type) = lanes.name(lane);
        let (participant_id, rail_type) = (participant_id.to_owned(), rail_type.to_owned());
        let Finding { outbox_id, sequence_id, place, why } = finding();
        self.examples.push(Example {
            what: kind,
            outbox_id,
            participant_id,
            rail_type,
            sequence_id,
            place,
            why,
        });
    }

    pub(super) fn lanes(&self) -> usize {
        self.by_lane.len()
    }

    /// The lanes with the most that is wrong, at most `limit`.
    pub(super) fn worst(&self, limit: usize) -> Vec<(u32, Tally)> {
        let mut all: Vec<_> = self.by_lane.iter().map(|(lane, tally)| (*lane, *tally)).collect();
        all.sort_unstable_by_key(|(lane, tally)| (std::cmp::Reverse(tally.sum()), *lane));
        all.truncate(limit);
        all
    }
}
