//! Reads parts of topics to their end, as transactions left them.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};

use super::super::callbacks::Log;
use super::evidence::Blind;
use super::shared::Shared;
use super::stretches::{Stretch, topics_of};
use super::survey::{code, consumer, ends};

/// How long a poll waits; also how often is looked whether we are to stop.
const POLL: Duration = Duration::from_millis(50);
/// How often is looked whether the transactions of others have ended.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Reads for one shard, until its patience ends.
pub(super) struct Reading<'a> {
    shared: &'a Shared,
    deadline: Instant,
    /// Reads what is committed. Each has threads and connections of its own, so one is made when it is first needed.
    committed: OnceCell<BaseConsumer<Log>>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(shared: &'a Shared, patience: Duration) -> Self {
        Self { shared, deadline: Instant::now() + patience, committed: OnceCell::new() }
    }

    /// Reads what is committed in these stretches, once nobody has a transaction open in them.
    pub(super) fn read(
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

    /// Only up to where somebody else has a transaction open, if nothing behind it is unknown: ours are over since we have fenced
    /// everybody off, and theirs may stay open for long.
    pub(super) fn before_foreign_transactions(
        &self,
        mut stretches: Vec<Stretch>,
        is_unknown: impl Fn(&BorrowedMessage<'_>) -> bool,
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
                unknown |= is_unknown(message);
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
        let reader = Reading::new(&shared, Duration::from_secs(2));
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
}
