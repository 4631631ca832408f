//! What is in the topic, in 32 bytes a record.

use super::lanes::{Lanes, Step};
use crate::rails::kafka::Record;

/// A record that names a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    /// The outbox_id: as a number it sorts as PostgreSQL sorts it.
    pub(super) id: u128,
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) lane: u32,
}

/// A record whose number is not above those before it: a duplicate, or out of order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspect {
    pub(super) entry: Entry,
    pub(super) sequence_id: i64,
    pub(super) step: Step,
    /// Not the first attempt, so that an earlier one may have been written.
    pub(super) is_retry: bool,
}

/// A record that names no row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nameless {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) lane: u32,
}

/// Everything that was read.
#[derive(Default)]
pub(super) struct Seen {
    unordered: Vec<String>,
    pub(super) records: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) suspects: Vec<Suspect>,
    pub(super) nameless: Vec<Nameless>,
    pub(super) lanes: Lanes,
}

impl Seen {
    /// `unordered` are the rails whose rows may come in any order.
    pub(super) fn new(unordered: Vec<String>) -> Self {
        Self { unordered, ..Self::default() }
    }

    /// The next record of its partition.
    pub(super) fn take(&mut self, record: &Record<'_>) {
        self.records += 1;
        let (partition, offset) = (record.partition, record.offset);
        let rail = record.rail_type.unwrap_or_default();
        let participant_id = record.participant_id.unwrap_or_default();
        let lane = self.lanes.number(participant_id, rail, partition);
        let Some(id) = record.outbox_id else {
            self.nameless.push(Nameless { partition, offset, lane });
            return;
        };
        let entry = Entry { id: id.as_u128(), partition, offset, lane };
        self.entries.push(entry);
        let Some(sequence_id) = record.sequence_id else { return };
        if self.unordered.iter().any(|unordered| unordered == rail) {
            return;
        }
        let step = self.lanes.step(lane, partition, sequence_id);
        if step != Step::Forward {
            let is_retry = record.attempt_no.is_some_and(|attempt| attempt > 1);
            self.suspects.push(Suspect { entry, sequence_id, step, is_retry });
        }
    }

    /// Brings the entries into the order of their ids.
    pub(super) fn sort(&mut self) {
        self.entries.sort_unstable();
    }

    /// Whether this is the first entry of its row. They must have been sorted.
    pub(super) fn is_first(&self, entry: &Entry) -> bool {
        let first = self.entries.partition_point(|other| other.id < entry.id);
        self.entries.get(first) == Some(entry)
    }
}
