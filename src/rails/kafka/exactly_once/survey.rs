//! Where topics begin and end.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::config::{FromClientConfigAndContext, RDKafkaLogLevel};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::KafkaError;
use rdkafka::topic_partition_list::Offset;
use rdkafka::types::RDKafkaErrorCode as Code;

use super::super::callbacks::Log;
use super::shared::Shared;

impl ConsumerContext for Log {}

/// The offset of each partition's first record, and the one behind its last.
pub(super) type Bounds = BTreeMap<i32, (i64, i64)>;

/// What stands for a time in a question after offsets.
const FIRST: i64 = -2;
const LAST: i64 = -1;

/// A reader of partitions that are assigned by hand.
pub(super) fn consumer(shared: &Shared, isolation: &str) -> Result<BaseConsumer<Log>, Code> {
    let mut config = shared.settings.properties.consumer();
    config.set_log_level(RDKafkaLogLevel::Error);
    for (name, value) in [
        // Nothing is committed: no group comes to be.
        ("group.id", "trestle-register"),
        ("enable.auto.commit", "false"),
        ("enable.partition.eof", "true"),
        // An offset that is deleted while we are about to read it must not make us begin at the end.
        ("auto.offset.reset", "error"),
        ("isolation.level", isolation),
        ("fetch.wait.max.ms", "5"),
    ] {
        config.set(name, value);
    }
    BaseConsumer::from_config_and_context(&config, shared.settings.log.clone()).map_err(code)
}

pub(super) fn code(error: KafkaError) -> Code {
    error.rdkafka_error_code().unwrap_or(Code::BrokerTransportFailure)
}

/// Up to where a reader sees each of these partitions now. One request for all that have the same leader.
pub(super) fn ends(
    reader: &BaseConsumer<Log>,
    topic: &str,
    partitions: impl Iterator<Item = i32>,
    timeout: Duration,
) -> Result<BTreeMap<i32, i64>, Code> {
    offsets(reader, topic, partitions, LAST, timeout)
}

fn offsets(
    reader: &BaseConsumer<Log>,
    topic: &str,
    partitions: impl Iterator<Item = i32>,
    time: i64,
    timeout: Duration,
) -> Result<BTreeMap<i32, i64>, Code> {
    let mut asked = TopicPartitionList::new();
    for partition in partitions {
        asked.add_partition_offset(topic, partition, Offset::from_raw(time)).map_err(code)?;
    }
    let answer = reader.offsets_for_times(asked, timeout).map_err(|error| known(code(error)))?;
    let offset = |place: rdkafka::topic_partition_list::TopicPartitionListElem<'_>| {
        place.error().map_err(|error| known(code(error)))?;
        let offset = place.offset().to_raw().filter(|offset| *offset >= 0);
        Ok((place.partition(), offset.ok_or(Code::LeaderNotAvailable)?))
    };
    answer.elements().into_iter().map(offset).collect()
}

/// The topic was there a moment ago: a broker that does not know it yet, or any more, says nothing about it.
fn known(code: Code) -> Code {
    match code {
        Code::UnknownTopicOrPartition | Code::UnknownTopic | Code::UnknownPartition => {
            Code::LeaderNotAvailable
        }
        other => other,
    }
}

impl Shared {
    /// Asks where partitions end, also behind open transactions.
    fn surveyor(&self) -> Result<Arc<BaseConsumer<Log>>, Code> {
        let mut surveyor = self.surveyor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(surveyor) = &*surveyor {
            // What librdkafka has to say to it would pile up.
            surveyor.poll(Duration::ZERO);
            return Ok(Arc::clone(surveyor));
        }
        let new = Arc::new(consumer(self, "read_uncommitted")?);
        *surveyor = Some(Arc::clone(&new));
        Ok(new)
    }

    /// Of each partition of a topic; nothing if there is no such topic.
    pub(super) fn bounds(&self, topic: &str) -> Result<Option<Bounds>, Code> {
        self.ask(|surveyor| match self.partitions(surveyor.client(), topic) {
            Err(Code::UnknownTopicOrPartition | Code::UnknownTopic) => Ok(None),
            count => {
                let all = 0..i32::try_from(count?).unwrap_or(i32::MAX);
                self.survey(surveyor, topic, all).map(Some)
            }
        })
    }

    /// Of one partition of a topic that is there.
    pub(super) fn bounds_of(&self, topic: &str, partition: i32) -> Result<(i64, i64), Code> {
        self.ask(|surveyor| {
            // Its leader may be another one by now.
            self.partitions(surveyor.client(), topic).map_err(known)?;
            let bounds = self.survey(surveyor, topic, std::iter::once(partition))?;
            bounds.get(&partition).copied().ok_or(Code::LeaderNotAvailable)
        })
    }

    /// Whoever got no answer is not asked again: it may know of leaders that are none any more.
    fn ask<T>(
        &self,
        question: impl FnOnce(&BaseConsumer<Log>) -> Result<T, Code>,
    ) -> Result<T, Code> {
        let answer = question(&*self.surveyor()?);
        if answer.is_err() {
            *self.surveyor.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
        answer
    }

    fn survey(
        &self,
        surveyor: &BaseConsumer<Log>,
        topic: &str,
        partitions: impl Iterator<Item = i32> + Clone,
    ) -> Result<Bounds, Code> {
        let timeout = self.settings.question_timeout();
        let firsts = offsets(surveyor, topic, partitions.clone(), FIRST, timeout)?;
        let mut ends = ends(surveyor, topic, partitions, timeout)?;
        let bounds = firsts.into_iter().map(|(partition, first)| {
            let end = ends.remove(&partition).ok_or(Code::LeaderNotAvailable)?;
            Ok((partition, (first, end)))
        });
        bounds.collect()
    }
}

/// Where the partitions end.
pub(super) fn ends_of(bounds: &Bounds) -> BTreeMap<i32, i64> {
    bounds.iter().map(|(partition, (_, end))| (*partition, *end)).collect()
}
