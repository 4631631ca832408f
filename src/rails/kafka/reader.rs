//! Reads a topic from end to end, joins no group and commits nothing.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::types::RDKafkaErrorCode as Code;
use rdkafka::{Offset, TopicPartitionList};
use thiserror::Error;
use uuid::Uuid;

use super::callbacks::Log;
use super::classify::error_code;
use super::headers::rail_type;
use super::inquiry::found;
use super::properties::Properties;
use super::redact::Redactor;
use super::topics::check_name;
use super::witness::Witness;
use crate::config::{ConfigError, KafkaRailConfig};

/// How long one question may take.
const QUESTION: Duration = Duration::from_secs(5);
/// How long nothing may come while there is something to read; and while no broker is there at all.
const SILENCE: Duration = Duration::from_secs(30);
const ALONE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(200);

/// What ends the reading at once: it does not get better by waiting.
const FINAL: [Code; 4] = [
    Code::TopicAuthorizationFailed,
    Code::UnknownTopic,
    Code::UnknownTopicOrPartition,
    Code::UnknownPartition,
];

#[derive(Debug, Error)]
pub enum ReadError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("topic {topic} at {brokers} cannot be read: {why}")]
    Topic { topic: String, brokers: String, why: String },
    #[error("{brokers} fell silent after {read} records of topic {topic}: {why}")]
    Silent { topic: String, brokers: String, read: u64, why: String },
}

/// One of our records, or somebody's. What does not read as ours is None.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    pub partition: i32,
    pub offset: i64,
    pub outbox_id: Option<Uuid>,
    pub participant_id: Option<&'a str>,
    pub rail_type: Option<&'a str>,
    pub sequence_id: Option<i64>,
    pub attempt_no: Option<i32>,
}

/// What there was to read of a partition when the reading began: from `start`, up to and without `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub partition: i32,
    pub start: i64,
    pub end: i64,
}

/// A topic, and up to where it is read.
pub struct Reader {
    consumer: BaseConsumer<Witness>,
    topic: String,
    brokers: String,
    spans: Vec<Span>,
}

impl Reader {
    /// Finds out how far the topic goes now; with `since`, where that time begins.
    pub fn open(
        rail: &str,
        config: &KafkaRailConfig,
        topic: &str,
        since: Option<SystemTime>,
    ) -> Result<Self, ReadError> {
        check_name("--topic", topic)?;
        let properties = Properties::new(&format!("rails.{rail}"), config)?;
        let log = Log { rail: rail.into(), redactor: Arc::new(Redactor::new(config)) };
        let brokers = config.brokers.clone().unwrap_or_default();
        let consumer =
            BaseConsumer::from_config_and_context(&properties.reader(), Witness::new(log))
                .map_err(|error| ReadError::Topic {
                    topic: topic.to_owned(),
                    brokers: brokers.clone(),
                    why: Redactor::new(config).redact(&error.to_string()),
                })?;
        let mut reader = Self { consumer, topic: topic.to_owned(), brokers, spans: Vec::new() };
        let found = reader.spans().and_then(|spans| match since {
            Some(since) => reader.later(spans, since),
            None => Ok(spans),
        });
        reader.spans = found.map_err(|error| reader.unreadable(&error))?;
        Ok(reader)
    }

    pub fn records(&self) -> u64 {
        self.spans.iter().map(|span| u64::try_from(span.end - span.start).unwrap_or(0)).sum()
    }

    /// Hands over every record up to where the topic went when this was opened, partition by
    /// partition in order. Returns what was there to read: where the topic's retention deleted
    /// something meanwhile, a later start.
    pub fn read(mut self, mut each: impl FnMut(&Record<'_>)) -> Result<Vec<Span>, ReadError> {
        let mut left: Vec<Span> =
            self.spans.iter().filter(|span| span.start < span.end).copied().collect();
        self.assign(&left).map_err(|error| self.unreadable(&error))?;
        let (mut read, mut last) = (0, Instant::now());
        while !left.is_empty() {
            match self.consumer.poll(POLL) {
                Some(Ok(message)) => {
                    last = Instant::now();
                    self.consumer.context().forget();
                    let Some(span) = of(&left, message.partition()) else { continue };
                    if message.offset() < span.end {
                        each(&record(&message));
                        read += 1;
                    }
                    if message.offset() + 1 >= span.end {
                        self.close(&mut left, span.partition);
                    }
                }
                // What is left of the partition are marks of transactions.
                Some(Err(KafkaError::PartitionEOF(partition))) => self.close(&mut left, partition),
                Some(Err(error)) if is_final(&error) => return Err(self.unreadable(&error)),
                Some(Err(_)) | None => {}
            }
            let patience = if self.consumer.context().all_down() { ALONE } else { SILENCE };
            if last.elapsed() > patience {
                return Err(self.silent(read));
            }
        }
        self.forget_deleted().map_err(|_| self.silent(read))?;
        Ok(std::mem::take(&mut self.spans))
    }

    fn assign(&self, spans: &[Span]) -> Result<(), KafkaError> {
        let mut list = TopicPartitionList::new();
        for span in spans {
            list.add_partition_offset(&self.topic, span.partition, Offset::Offset(span.start))?;
        }
        self.consumer.assign(&list)
    }

    fn close(&self, left: &mut Vec<Span>, partition: i32) {
        left.retain(|span| span.partition != partition);
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.topic, partition);
        // What comes all the same is passed over.
        let _ = self.consumer.pause(&list);
    }

    fn spans(&self) -> Result<Vec<Span>, KafkaError> {
        let metadata = self.consumer.fetch_metadata(Some(&self.topic), QUESTION)?;
        let topic = found(&metadata, &self.topic).map_err(KafkaError::MetadataFetch)?;
        let span = |partition| {
            let marks = self.consumer.fetch_watermarks(&self.topic, partition, QUESTION);
            marks.map(|(start, end)| Span { partition, start, end })
        };
        topic.partitions().iter().map(|partition| span(partition.id())).collect()
    }

    fn later(&self, spans: Vec<Span>, since: SystemTime) -> Result<Vec<Span>, KafkaError> {
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since = Offset::Offset(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        let mut asked = TopicPartitionList::new();
        for span in &spans {
            asked.add_partition_offset(&self.topic, span.partition, since)?;
        }
        let found = self.consumer.offsets_for_times(asked, QUESTION)?;
        let start = |span: &Span| match found.find_partition(&self.topic, span.partition) {
            Some(found) => match found.offset() {
                Offset::Offset(offset) => offset.clamp(span.start, span.end),
                _ => span.end,
            },
            None => span.end,
        };
        Ok(spans.iter().map(|span| Span { start: start(span), ..*span }).collect())
    }

    fn forget_deleted(&mut self) -> Result<(), KafkaError> {
        for span in &mut self.spans {
            let (low, _) = self.consumer.fetch_watermarks(&self.topic, span.partition, QUESTION)?;
            span.start = span.start.max(low);
        }
        Ok(())
    }

    fn unreadable(&self, error: &KafkaError) -> ReadError {
        let (topic, brokers) = (self.topic.clone(), self.brokers.clone());
        ReadError::Topic { topic, brokers, why: self.why(error) }
    }

    fn silent(&self, read: u64) -> ReadError {
        let (topic, brokers) = (self.topic.clone(), self.brokers.clone());
        let why = self.consumer.context().why(Code::OperationTimedOut);
        ReadError::Silent { topic, brokers, read, why }
    }

    fn why(&self, error: &KafkaError) -> String {
        let witness = self.consumer.context();
        // It says enough, and what librdkafka last said may be of something else.
        if let Some(code) = error.rdkafka_error_code().filter(|code| FINAL.contains(code)) {
            return format!("{}: {code}", error_code(code));
        }
        witness.listen(|timeout| drop(self.consumer.poll(timeout)));
        witness.why(error.rdkafka_error_code().unwrap_or(Code::Unknown))
    }
}

fn of(spans: &[Span], partition: i32) -> Option<Span> {
    spans.iter().find(|span| span.partition == partition).copied()
}

fn is_final(error: &KafkaError) -> bool {
    error.rdkafka_error_code().is_some_and(|code| FINAL.contains(&code))
}

fn record<'a>(message: &'a BorrowedMessage<'_>) -> Record<'a> {
    let mut record = Record {
        partition: message.partition(),
        offset: message.offset(),
        outbox_id: None,
        participant_id: message.key().and_then(|key| std::str::from_utf8(key).ok()),
        rail_type: None,
        sequence_id: None,
        attempt_no: None,
    };
    let Some(headers) = message.headers() else { return record };
    for header in headers.iter() {
        let Some(value) = header.value.and_then(|value| std::str::from_utf8(value).ok()) else {
            continue;
        };
        match header.key {
            // Ours come first: the other style's may be the producer's own.
            "ce_id" | "id" if record.outbox_id.is_none() => record.outbox_id = value.parse().ok(),
            "ce_type" | "eventType" if record.rail_type.is_none() => {
                record.rail_type = rail_type(value);
            }
            "sequence_id" => record.sequence_id = value.parse().ok(),
            "attempt_no" => record.attempt_no = value.parse().ok(),
            _ => {}
        }
    }
    record
}
