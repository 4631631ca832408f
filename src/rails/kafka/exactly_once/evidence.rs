//! Reads what the register and the topics have of a shard, after everybody before us is fenced off.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::types::RDKafkaErrorCode as Code;
use uuid::Uuid;

use super::super::callbacks::reference;
use super::reading::Reading;
use super::register::{self, Entry};
use super::shared::Shared;
use super::stretches::{Need, Records, beginnings, stretches_of};
use super::survey::ends_of;
use crate::delivery::{Evidence, Found, Places, Stand};
use crate::failpoint::is_taken_out;

/// Of a register that was never read, how many records from its end are read first.
const FIRST_LOOK: i64 = 64;

/// Why there is no evidence.
#[derive(Debug)]
pub(super) enum Blind {
    /// It may be there later.
    Unavailable(String),
    /// It is gone for good: somebody has to decide.
    Gone(String),
}

impl From<Code> for Blind {
    fn from(code: Code) -> Self {
        Self::Unavailable(code.to_string())
    }
}

pub(super) struct Reader<'a> {
    shared: &'a Shared,
    shard: i16,
    reading: Reading<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shared: &'a Shared, shard: i16, patience: Duration) -> Self {
        Self { shared, shard, reading: Reading::new(shared, patience) }
    }

    /// Everything that is known of the shard since `stand`, and where its topics ended before its first record.
    pub(super) fn gather(
        &self,
        stand: &Stand,
        sender: String,
    ) -> Result<(Evidence, Places), Blind> {
        let told = self.register(stand)?;
        let mut evidence = Evidence {
            complete: Vec::new(),
            last_batch: told.entries.iter().map(|entry| entry.batch).max(),
            sender,
            ..Evidence::default()
        };
        // A shard that has had batches and knows no places was let go on by an operator: nothing is looked for.
        let wanted = stand.batch == 0 || !stand.places.is_empty();
        if wanted {
            // What the database has decided about needs no proof, and may be gone with time.
            let decided = stand.batch - i64::from(stand.under_way);
            let open: Vec<&Entry> = told.entries.iter().filter(|e| e.batch > decided).collect();
            evidence.complete = open.iter().map(|entry| (entry.batch, entry.rows)).collect();
            // Always: batches that speak for themselves are not in the register, and the database may have lost them.
            evidence.found = self.tail(stand, &open, Need::of(stand, &told, &open))?;
            let last_found = evidence.found.iter().map(|row| row.batch).max();
            evidence.last_batch = evidence.last_batch.max(last_found);
        }
        evidence.places = self.places(stand)?;
        let mut origin = told.last.map(|entry| entry.origin).unwrap_or_default();
        for (topic, places) in stand.places.iter().chain(&evidence.places) {
            if *topic != self.shared.register_topic && !origin.contains_key(topic) {
                origin.insert(topic.clone(), places.clone());
            }
        }
        Ok((evidence, origin))
    }

    /// Where everything ends now: nothing of this shard is under way.
    fn places(&self, stand: &Stand) -> Result<Places, Blind> {
        let mut topics: BTreeSet<String> = stand.places.keys().cloned().collect();
        topics.extend(self.shared.settings.topics.only().map(|topic| topic.to_string()));
        let (register, own) = (&self.shared.register_topic, i32::from(self.shard));
        topics.remove(register);
        let (_, end) = self.shared.bounds_of(register, own)?;
        let ends = BTreeMap::from([(own, end)]);
        self.shared.reach.learn(register, &ends);
        let mut places = Places::from([(register.clone(), ends)]);
        for topic in topics {
            let Some(bounds) = self.shared.bounds(&topic)? else {
                // It is noted before it is first used.
                self.shared.reach.forget(&topic);
                continue;
            };
            let ends = ends_of(&bounds);
            self.shared.reach.learn(&topic, &ends);
            places.insert(topic, ends);
        }
        Ok(places)
    }

    fn register(&self, stand: &Stand) -> Result<Told, Blind> {
        let (topic, partition) = (&self.shared.register_topic, i32::from(self.shard));
        let (low, high) = self.shared.bounds_of(topic, partition)?;
        let known = stand.places.get(topic).and_then(|places| places.get(&partition)).copied();
        let mut look = FIRST_LOOK;
        loop {
            let from = known.unwrap_or(high).min(high - look).max(low);
            let entries = self.entries(from, high)?;
            if !entries.is_empty() || from == low {
                return told(entries, known, high);
            }
            look *= 8;
        }
    }

    /// What a part of the register says of our shard, by offset, and what nobody can read.
    fn entries(&self, from: i64, to: i64) -> Result<Vec<Inscription>, Blind> {
        let key = register::key(&self.shared.scope, self.shard);
        let stretch = (self.shared.register_topic.clone(), i32::from(self.shard), from, to);
        let mut entries = Vec::new();
        self.reading.read(vec![stretch], |message| {
            let entry = register::read(&key, message.key(), message.payload()).map_err(|why| {
                let at = reference(message.topic(), message.partition(), message.offset());
                format!(
                    "the record {at} of the register cannot be read, {why}: give the rail another register_topic"
                )
            });
            entries.extend(entry.transpose().map(|entry| (message.offset(), entry)));
        })?;
        Ok(entries)
    }

    /// The rows of the shard that are in the topics since `stand`. A topic that is gone is missed only if
    /// something that nobody has decided about may be in it.
    fn tail(&self, stand: &Stand, open: &[&Entry], need: Need) -> Result<Vec<Found>, Blind> {
        let named = |topic: &str| open.iter().any(|entry| entry.offsets.contains_key(topic));
        let may_be_in =
            |topic: &str| need.noted_topics && stand.places.contains_key(topic) || named(topic);
        let mut stretches = Vec::new();
        for (topic, places) in &beginnings(stand, open)? {
            if *topic == self.shared.register_topic || is_taken_out("tail") {
                continue;
            }
            let bounds = match self.shared.bounds(topic)? {
                None if may_be_in(topic) => {
                    return Err(Blind::Gone(format!("the topic {topic} is gone")));
                }
                None => continue,
                Some(bounds) => bounds,
            };
            stretches.extend(stretches_of(topic, places, &bounds, need.records)?);
        }
        if need.records == Records::Any {
            // What the database does not know of has to be read to its end.
            let is_unknown = |message: &BorrowedMessage<'_>| {
                self.row(message).is_some_and(|row| row.batch > stand.batch)
            };
            stretches = self.reading.before_foreign_transactions(stretches, is_unknown)?;
        }
        let mut found = Vec::new();
        self.reading.read(stretches, |message| found.extend(self.row(message)))?;
        Ok(found)
    }

    fn row(&self, message: &BorrowedMessage<'_>) -> Option<Found> {
        // A producer may have headers of its own with these names: the mark stands last, our ids before theirs.
        let headers = message.headers()?;
        let mark = headers.iter().filter(|header| header.key == register::HEADER).last()?.value?;
        let batch = register::read_mark(&self.shared.scope, self.shard, mark)?;
        let id = headers.iter().find(|header| matches!(header.key, "ce_id" | "id"))?.value?;
        Some(Found {
            outbox_id: Uuid::try_parse_ascii(id).ok()?,
            batch,
            reference: reference(message.topic(), message.partition(), message.offset()),
        })
    }
}

/// An entry of the register, or why it cannot be read, and its offset.
type Inscription = (i64, Result<Entry, String>);

/// What the register says of a shard.
pub(super) struct Told {
    /// The entries since its stand; of a shard without one, the last.
    pub(super) entries: Vec<Entry>,
    last: Option<Entry>,
    /// Whether the register has lost what it had.
    pub(super) lost: bool,
}

/// What cannot be read is missed if it is the last entry, or one since `known`.
fn told(entries: Vec<Inscription>, known: Option<i64>, high: i64) -> Result<Told, Blind> {
    let since = known.or(entries.last().map(|(offset, _)| *offset)).unwrap_or(high);
    let last = entries.last().map(|(_, entry)| entry.clone()).transpose().map_err(Blind::Gone)?;
    let entries = entries.into_iter().filter(|(offset, _)| *offset >= since);
    let entries: Result<_, _> = entries.map(|(_, entry)| entry.map_err(Blind::Gone)).collect();
    Ok(Told { entries: entries?, last, lost: known.is_some_and(|from| high < from) })
}
