//! Reads what the register and the topics have of a shard, after everybody before us is fenced off.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use uuid::Uuid;

use super::super::callbacks::{Log, reference};
use super::register::{self, Entry};
use super::shared::Shared;
use super::survey::{code, consumer, ends, ends_of};
use crate::delivery::{Evidence, Found, Places, Stand};
use crate::failpoint::is_taken_out;

/// How long a poll waits; also how often is looked whether we are to stop.
const POLL: Duration = Duration::from_millis(50);
/// How often is looked whether the transactions of others have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
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

/// A part of a partition: from the first offset to before the second.
type Stretch = (String, i32, i64, i64);

pub(super) struct Reader<'a> {
    shared: &'a Shared,
    shard: i16,
    deadline: Instant,
    /// Reads what is committed. Each has threads and connections of its own, so one is made when it is first needed.
    committed: OnceCell<BaseConsumer<Log>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(shared: &'a Shared, shard: i16, patience: Duration) -> Self {
        Self { shared, shard, deadline: Instant::now() + patience, committed: OnceCell::new() }
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
        self.read(vec![stretch], |message| {
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
            stretches = self.before_foreign_transactions(stretches, stand.batch)?;
        }
        let mut found = Vec::new();
        self.read(stretches, |message| found.extend(self.row(message)))?;
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

    /// Reads what is committed in these stretches, once nobody has a transaction open in them.
    fn read(
        &self,
        mut stretches: Vec<Stretch>,
        mut see: impl FnMut(&BorrowedMessage<'_>),
    ) -> Result<(), Blind> {
        stretches.retain(|(_, _, from, to)| from < to);
        if stretches.is_empty() {
            return Ok(());
        }
        let reader = self.committed()?;
        for topic in topics_of(&stretches) {
            let of_topic = stretches.iter().filter(|(of, ..)| of == topic);
            self.await_end_of_transactions(reader, topic, of_topic.clone())?;
            self.read_topic(reader, topic, of_topic, &mut see)?;
        }
        Ok(())
    }

    fn committed(&self) -> Result<&BaseConsumer<Log>, Code> {
        if let Some(reader) = self.committed.get() {
            return Ok(reader);
        }
        let new = consumer(self.shared, "read_committed")?;
        Ok(self.committed.get_or_init(|| new))
    }

    /// Only up to where somebody else has a transaction open, if nothing behind it is of a batch of ours that the database does
    /// not know: ours are over since we have fenced everybody off, and theirs may stay open for long.
    fn before_foreign_transactions(
        &self,
        mut stretches: Vec<Stretch>,
        last_known: i64,
    ) -> Result<Vec<Stretch>, Blind> {
        stretches.retain(|(_, _, from, to)| from < to);
        let (timeout, mut hidden) = (self.shared.settings.question_timeout(), Vec::new());
        for topic in topics_of(&stretches) {
            let parts = stretches.iter().filter(|(of, ..)| of == topic).map(|(_, part, ..)| *part);
            let stable = ends(self.committed()?, topic, parts, timeout)?;
            for (_, part, from, to) in stretches.iter().filter(|(of, ..)| of == topic) {
                let until = stable.get(part).copied().unwrap_or(*from);
                if until < *to {
                    hidden.push((topic.to_owned(), *part, until.max(*from), *to));
                }
            }
        }
        if hidden.is_empty() {
            return Ok(stretches);
        }
        let (raw, mut unknown) = (consumer(self.shared, "read_uncommitted")?, false);
        for topic in topics_of(&hidden) {
            let of_topic = hidden.iter().filter(|(of, ..)| of == topic);
            self.read_topic(&raw, topic, of_topic, &mut |message: &BorrowedMessage<'_>| {
                unknown |= self.row(message).is_some_and(|row| row.batch > last_known);
            })?;
        }
        if !unknown {
            for (topic, part, until, _) in hidden {
                let same = |stretch: &&mut Stretch| stretch.0 == topic && stretch.1 == part;
                stretches.iter_mut().filter(same).for_each(|stretch| stretch.3 = until);
            }
        }
        Ok(stretches)
    }

    fn read_topic<'s>(
        &self,
        reader: &BaseConsumer<Log>,
        topic: &str,
        stretches: impl Iterator<Item = &'s Stretch>,
        see: &mut impl FnMut(&BorrowedMessage<'_>),
    ) -> Result<(), Blind> {
        let mut assignment = TopicPartitionList::new();
        let mut left = BTreeMap::new();
        for (_, partition, from, to) in stretches {
            let added = assignment.add_partition_offset(topic, *partition, Offset::Offset(*from));
            added.map_err(unavailable)?;
            left.insert(*partition, *to);
        }
        reader.assign(&assignment).map_err(unavailable)?;
        while !left.is_empty() {
            match reader.poll(POLL) {
                Some(Ok(message)) => {
                    if self.shared.is_closing() {
                        return Err(Blind::Unavailable("the worker stops".to_owned()));
                    }
                    see(&message);
                    let partition = message.partition();
                    if left.get(&partition).is_some_and(|to| message.offset() + 1 >= *to) {
                        left.remove(&partition);
                    }
                }
                // What was left up to the end were marks of transactions, and what was aborted.
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    let reached = position(reader, topic, partition)?;
                    if left.get(&partition).is_some_and(|to| reached >= *to) {
                        left.remove(&partition);
                    }
                    // A new leader may not know yet how far its readers are: it says so again when it does.
                }
                Some(Err(error)) => return Err(unavailable(error)),
                None => self.check_patience("the topics were not read to their end in time")?,
            }
        }
        Ok(())
    }

    /// A reader of committed records gets nothing behind the first open transaction.
    fn await_end_of_transactions<'s>(
        &self,
        reader: &BaseConsumer<Log>,
        topic: &str,
        stretches: impl Iterator<Item = &'s Stretch>,
    ) -> Result<(), Blind> {
        let mut open: BTreeMap<i32, i64> = stretches.map(|(_, part, _, to)| (*part, *to)).collect();
        loop {
            let timeout = self.shared.settings.question_timeout();
            let stable = ends(reader, topic, open.keys().copied(), timeout)?;
            open.retain(|partition, to| stable.get(partition).is_none_or(|stable| stable < to));
            if open.is_empty() {
                return Ok(());
            }
            self.check_patience("a transaction that somebody left open hides the end of a topic")?;
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn check_patience(&self, words: &str) -> Result<(), Blind> {
        if Instant::now() > self.deadline || self.shared.is_closing() {
            return Err(Blind::Unavailable(words.to_owned()));
        }
        Ok(())
    }
}

fn topics_of(stretches: &[Stretch]) -> BTreeSet<&str> {
    stretches.iter().map(|(topic, ..)| topic.as_str()).collect()
}

/// What has to be there still.
struct Need {
    /// Each topic of which the database knows a place.
    noted_topics: bool,
    records: Records,
}

/// Which records of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Records {
    /// All since its place: something that nobody has decided about may be there.
    All,
    /// What retention has left.
    Rest,
    /// Nothing, because nothing tells of any: the topic may even be another one by now.
    Any,
}

impl Need {
    fn of(stand: &Stand, told: &Told, open: &[&Entry]) -> Self {
        // The database has lost commits: what is deleted meanwhile may be what it does not know of.
        let forgetful = open.iter().any(|entry| entry.batch > stand.batch);
        let records = if stand.under_way || forgetful {
            Records::All
        } else if !told.entries.is_empty() || told.lost {
            Records::Rest
        } else {
            Records::Any
        };
        Self { noted_topics: stand.under_way || told.lost, records }
    }
}

/// An entry of the register, or why it cannot be read, and its offset.
type Inscription = (i64, Result<Entry, String>);

/// What the register says of a shard.
struct Told {
    /// The entries since its stand; of a shard without one, the last.
    entries: Vec<Entry>,
    last: Option<Entry>,
    /// Whether the register has lost what it had.
    lost: bool,
}

/// What cannot be read is missed if it is the last entry, or one since `known`.
fn told(entries: Vec<Inscription>, known: Option<i64>, high: i64) -> Result<Told, Blind> {
    let since = known.or(entries.last().map(|(offset, _)| *offset)).unwrap_or(high);
    let last = entries.last().map(|(_, entry)| entry.clone()).transpose().map_err(Blind::Gone)?;
    let entries = entries.into_iter().filter(|(offset, _)| *offset >= since);
    let entries: Result<_, _> = entries.map(|(_, entry)| entry.map_err(Blind::Gone)).collect();
    Ok(Told { entries: entries?, last, lost: known.is_some_and(|from| high < from) })
}

/// From where on the topics are read: from the places that the database knows. Of a topic that it has forgotten, with
/// the batch that first went there, the register remembers where the shard began.
fn beginnings(stand: &Stand, open: &[&Entry]) -> Result<Places, Blind> {
    let mut from = stand.places.clone();
    for entry in open.iter().filter(|entry| entry.batch > stand.batch) {
        for (topic, places) in &entry.origin {
            from.entry(topic.clone()).or_insert_with(|| places.clone());
        }
        if let Some(topic) = entry.offsets.keys().find(|topic| !from.contains_key(*topic)) {
            return Err(Blind::Gone(format!(
                "batch {} is in the topic {topic}, but nothing says from where on to read it",
                entry.batch
            )));
        }
    }
    Ok(from)
}

/// What of a topic is to be read: each partition from its place on, as a whole if it is not the one that it was.
fn stretches_of(
    topic: &str,
    places: &BTreeMap<i32, i64>,
    bounds: &BTreeMap<i32, (i64, i64)>,
    needed: Records,
) -> Result<Vec<Stretch>, Blind> {
    let gone = places.keys().find(|partition| !bounds.contains_key(partition));
    if let Some(gone) = gone.filter(|_| needed != Records::Any) {
        return Err(Blind::Gone(format!("partition {gone} of {topic} is gone")));
    }
    let stretch = |(partition, (low, high)): (&i32, &(i64, i64))| {
        // A partition that is not among the places is younger than them.
        let from = places.get(partition).copied().unwrap_or(*low);
        let missed = match needed {
            Records::All => *high < from || *low > from,
            Records::Rest => *high < from,
            Records::Any => false,
        };
        if missed {
            return Err(Blind::Gone(format!(
                "partition {partition} of {topic} has the offsets {low} to {high}, but what is to be found out is from {from} on"
            )));
        }
        let from = if *high < from { *low } else { from.max(*low) };
        Ok((topic.to_owned(), *partition, from, *high))
    };
    bounds.iter().map(stretch).collect()
}

/// Up to where a partition is read, with the marks of transactions.
fn position(reader: &BaseConsumer<Log>, topic: &str, partition: i32) -> Result<i64, Blind> {
    let positions = reader.position().map_err(unavailable)?;
    let place = positions.find_partition(topic, partition).map(|place| place.offset());
    // Nothing of it has come yet.
    Ok(place.and_then(|offset| offset.to_raw()).unwrap_or(0))
}

fn unavailable(error: KafkaError) -> Blind {
    code(error).into()
}

#[cfg(test)]
mod tests {
    use rdkafka::config::ClientConfig;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};

    use super::super::super::settings::Settings;
    use super::super::super::testing::config;
    use super::super::super::topics::Topics;
    use super::*;

    /// A broker that has three records, and a reader that knows there to be more or not.
    fn read_up_to(to: i64) -> Result<usize, Blind> {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let brokers = cluster.bootstrap_servers();
        let producer: BaseProducer =
            ClientConfig::new().set("bootstrap.servers", &brokers).create().unwrap();
        for _ in 0..3 {
            producer.send(BaseRecord::<str, str>::to("t").payload("x")).unwrap();
        }
        producer.flush(Duration::from_secs(10)).unwrap();
        let mut config = config("");
        config.brokers = Some(brokers);
        let topics = Topics::new("sepa", &config).unwrap();
        let settings = Settings::new("sepa", "rails.sepa", &config, topics).unwrap();
        let shared = Shared::new(settings, "trestle", "register".to_owned(), 1);
        let reader = Reader::new(&shared, 0, Duration::from_secs(2));
        let (stretch, mut seen) = (("t".to_owned(), 0, 0, to), 0);
        let consumer = consumer(&shared, "read_committed")?;
        reader.read_topic(&consumer, "t", [&stretch].into_iter(), &mut |_| seen += 1)?;
        Ok(seen)
    }

    #[test]
    fn a_broker_that_is_behind_does_not_end_the_reading() {
        assert_eq!(read_up_to(3).unwrap(), 3);
        assert!(matches!(read_up_to(4), Err(Blind::Unavailable(_))));
    }

    fn read(places: &[(i32, i64)], low: i64, needed: Records) -> Option<Vec<(i32, i64, i64)>> {
        let bounds = [(0, (low, 20)), (1, (0, 3))].into();
        let places = places.iter().copied().collect();
        let stretches = stretches_of("t", &places, &bounds, needed).ok()?;
        Some(stretches.into_iter().map(|(_, partition, from, to)| (partition, from, to)).collect())
    }

    #[test]
    fn a_topic_is_read_from_its_places_on_and_what_is_younger_as_a_whole() {
        for needed in [Records::All, Records::Rest, Records::Any] {
            assert_eq!(read(&[(0, 7)], 5, needed), Some(vec![(0, 7, 20), (1, 0, 3)]));
        }
    }

    #[test]
    fn what_retention_has_deleted_is_missed_only_while_a_batch_is_under_way() {
        for needed in [Records::Rest, Records::Any] {
            assert_eq!(read(&[(0, 7)], 9, needed), Some(vec![(0, 9, 20), (1, 0, 3)]));
        }
        assert_eq!(read(&[(0, 7)], 9, Records::All), None);
    }

    #[test]
    fn a_topic_that_is_shorter_than_it_was_is_not_the_same() {
        for needed in [Records::All, Records::Rest] {
            assert_eq!(read(&[(0, 21)], 5, needed), None);
            assert_eq!(read(&[(0, 7), (2, 0)], 5, needed), None, "a partition is gone");
        }
        let whole = Some(vec![(0, 5, 20), (1, 0, 3)]);
        assert_eq!(read(&[(0, 21), (2, 0)], 5, Records::Any), whole, "and is read as a whole");
    }
}
