//! Holds the topic against the ledger, row by row in the order of their ids.

use uuid::Uuid;

use super::findings::{Finding, Findings, Kind};
use super::lanes::Step;
use super::seen::{Entry, Seen};
use crate::delivery::Place;
use crate::rails::kafka::Span;
use crate::store::{Delivery, Fate};

/// What was compared, and what could not be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) struct Counts {
    /// Rows of the ledger that were delivered here, and should be in what was read.
    pub(super) rows: u64,
    /// Rows whose record the topic has deleted since, or that are before `--since`.
    pub(super) before: u64,
    /// Rows that were delivered after the topic was read.
    pub(super) after: u64,
    /// Records of rows whose outcome is not recorded yet.
    pub(super) unrecorded: u64,
    /// Records of rows that are older than the hot ledger.
    pub(super) archived: u64,
}

pub(super) struct Comparison<'a> {
    pub(super) topic: &'a str,
    seen: Seen,
    pub(super) spans: Vec<Span>,
    pub(super) counts: Counts,
    pub(super) findings: Findings,
    /// The first entry whose row has not come yet.
    next: usize,
    /// Where the entries of rows begin that did not come.
    doubts: Vec<u32>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(topic: &'a str, mut seen: Seen, spans: Vec<Span>) -> Self {
        seen.sort();
        let mut comparison = Self {
            topic,
            seen,
            spans,
            counts: Counts::default(),
            findings: Findings::default(),
            next: 0,
            doubts: Vec::new(),
        };
        comparison.look_at_suspects();
        for nameless in std::mem::take(&mut comparison.seen.nameless) {
            let place = comparison.place(nameless.partition, nameless.offset);
            let why = "its headers name no row".to_owned();
            let found = || Finding { place: Some(place), why, ..Finding::default() };
            comparison.findings.add(Kind::Foreign, &comparison.seen.lanes, nameless.lane, found);
        }
        comparison
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// The next row of the ledger, in the order of the ids.
    pub(super) fn take(&mut self, row: &Delivery) {
        let id = row.outbox_id.as_u128();
        while self.head().is_some_and(|entry| entry.id < id) {
            self.doubt();
        }
        if self.head().is_some_and(|entry| entry.id == id) {
            let start = self.next;
            self.next = self.group_end(start);
            self.present(row, start);
        } else {
            self.absent(row);
        }
    }

    /// The ledger has no more rows: whose records are left is in doubt. The ids of these rows.
    pub(super) fn in_doubt(&mut self) -> Vec<Uuid> {
        while self.head().is_some() {
            self.doubt();
        }
        let id = |start: &u32| Uuid::from_u128(self.seen.entries[*start as usize].id);
        self.doubts.iter().map(id).collect()
    }

    /// What a second look says about a row that is in doubt. Rows before `hot_from` are archived.
    pub(super) fn settle(&mut self, id: Uuid, fate: &Fate, hot_from: Option<Uuid>) {
        let start = self.seen.entries.partition_point(|entry| entry.id < id.as_u128());
        match fate {
            Fate::Delivered(row) if self.is_here(row) => self.present(row, start),
            Fate::Delivered(row) => {
                self.foreign(start, format!("was delivered elsewhere: {}", row.reference));
            }
            Fate::Pending => {
                self.counts.unrecorded += 1;
                self.duplicates(start, None);
            }
            Fate::Failed => self.foreign(start, "is FAILED in the ledger".to_owned()),
            Fate::Unknown if hot_from.is_some_and(|hot| id < hot) => self.counts.archived += 1,
            Fate::Unknown => self.foreign(start, "is no row of this outbox".to_owned()),
        }
    }

    fn head(&self) -> Option<&Entry> {
        self.seen.entries.get(self.next)
    }

    /// Where the entries of the next row begin.
    fn group_end(&self, start: usize) -> usize {
        let entries = &self.seen.entries[start..];
        let id = entries.first().map(|entry| entry.id);
        start + entries.iter().take_while(|entry| Some(entry.id) == id).count()
    }

    fn doubt(&mut self) {
        self.doubts.push(u32::try_from(self.next).unwrap_or(u32::MAX));
        self.next = self.group_end(self.next);
    }

    /// The row is in the topic: is it there once, and where the ledger says?
    fn present(&mut self, row: &Delivery, start: usize) {
        self.counts.rows += 1;
        self.duplicates(start, Some(row.sequence_id));
        let group = &self.seen.entries[start..self.group_end(start)];
        let Some(Place { partition, offset: Some(offset), .. }) = Place::parse(&row.reference)
        else {
            return;
        };
        let is_there = |entry: &Entry| (entry.partition, entry.offset) == (partition, offset);
        // The last one may have come after the topic was read.
        let is_later = self.span(partition).is_some_and(|span| offset >= span.end);
        if is_later || group.iter().any(is_there) {
            return;
        }
        let (place, lane) = (self.place(group[0].partition, group[0].offset), group[0].lane);
        let finding = || Finding {
            outbox_id: Some(row.outbox_id),
            sequence_id: Some(row.sequence_id),
            place: Some(place),
            why: format!("the ledger has it at {}", row.reference),
        };
        self.findings.add(Kind::Misplaced, &self.seen.lanes, lane, finding);
    }

    /// The row is not in what was read: should it be?
    fn absent(&mut self, row: &Delivery) {
        let place = Place::parse(&row.reference);
        let span = place.and_then(|place| self.span(place.partition));
        let offset = place.and_then(|place| place.offset);
        match (span, offset) {
            (Some(span), Some(offset)) if offset >= span.end => self.counts.after += 1,
            (Some(span), Some(offset)) if offset < span.start => self.counts.before += 1,
            (_, None) if row.is_late => self.counts.after += 1,
            (Some(span), None) if span.start > 0 => self.counts.before += 1,
            _ => self.missing(row),
        }
    }

    fn missing(&mut self, row: &Delivery) {
        self.counts.rows += 1;
        let lane = self.seen.lanes.number(&row.participant_id, &row.rail_type, 0);
        let finding = || Finding {
            outbox_id: Some(row.outbox_id),
            sequence_id: Some(row.sequence_id),
            place: Some(row.reference.clone()),
            why: "is not there".to_owned(),
        };
        self.findings.add(Kind::Missing, &self.seen.lanes, lane, finding);
    }

    /// Every record of a row that should not be here.
    fn foreign(&mut self, start: usize, why: String) {
        self.duplicates(start, None);
        let Entry { id, partition, offset, lane } = self.seen.entries[start];
        let place = self.place(partition, offset);
        let finding = || Finding {
            outbox_id: Some(Uuid::from_u128(id)),
            sequence_id: None,
            place: Some(place),
            why,
        };
        self.findings.add(Kind::Foreign, &self.seen.lanes, lane, finding);
    }

    fn duplicates(&mut self, start: usize, sequence_id: Option<i64>) {
        for index in start + 1..self.group_end(start) {
            let Entry { id, partition, offset, lane } = self.seen.entries[index];
            let place = self.place(partition, offset);
            let first = self.seen.entries[start];
            let first = self.place(first.partition, first.offset);
            let finding = || Finding {
                outbox_id: Some(Uuid::from_u128(id)),
                sequence_id,
                place: Some(place),
                why: format!("is also at {first}"),
            };
            self.findings.add(Kind::Duplicate, &self.seen.lanes, lane, finding);
        }
    }

    /// A record whose number is not above those before it, and which is the first of its row.
    fn look_at_suspects(&mut self) {
        for suspect in std::mem::take(&mut self.seen.suspects) {
            if !self.seen.is_first(&suspect.entry) {
                continue;
            }
            let Entry { id, partition, offset, lane } = suspect.entry;
            let begins = self.span(partition).is_some_and(|span| span.start == 0);
            let (kind, why) = if suspect.step == Step::Again {
                (Kind::Duplicate, "has the number of another row, which it replays")
            } else if suspect.is_retry && !begins {
                (Kind::Duplicate, "is not the first attempt, and comes after later rows")
            } else {
                (Kind::OutOfOrder, "comes after a later row of its lane")
            };
            let place = self.place(partition, offset);
            let finding = || Finding {
                outbox_id: Some(Uuid::from_u128(id)),
                sequence_id: Some(suspect.sequence_id),
                place: Some(place),
                why: why.to_owned(),
            };
            self.findings.add(kind, &self.seen.lanes, lane, finding);
        }
    }

    fn is_here(&self, row: &Delivery) -> bool {
        Place::parse(&row.reference).is_some_and(|place| place.topic == self.topic)
    }

    fn span(&self, partition: i32) -> Option<Span> {
        self.spans.iter().find(|span| span.partition == partition).copied()
    }

    fn place(&self, partition: i32, offset: i64) -> String {
        Place { topic: self.topic, partition, offset: Some(offset) }.to_string()
    }
}
