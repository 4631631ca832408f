//! A consumer of both topics.

use std::time::Duration;

use rdkafka::consumer::{Consumer as _, StreamConsumer};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use crate::Result;
use crate::arrival::{Arrival, Journal};
use crate::topics::{DEAD_LETTERS, PAYMENTS};

const PATIENCE: Duration = Duration::from_secs(10);
/// What a dead letter says about its failure.
const FAILURE: [&str; 3] = ["dlq_rail_type", "dlq_error_code", "dlq_attempts"];

/// A consumer that gets whatever is written from now on.
pub(crate) fn from_now_on(brokers: &str) -> Result<StreamConsumer> {
    let consumer: StreamConsumer = ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "trestle-demo")
        .set("enable.auto.commit", "false")
        // A broker that comes back is noticed soon.
        .set("reconnect.backoff.max.ms", "500")
        .create()?;
    let mut places = TopicPartitionList::new();
    for topic in [PAYMENTS, DEAD_LETTERS] {
        let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
        for partition in metadata.topics().iter().flat_map(|topic| topic.partitions()) {
            let (_, next) = consumer.fetch_watermarks(topic, partition.id(), PATIENCE)?;
            places.add_partition_offset(topic, partition.id(), Offset::Offset(next))?;
        }
    }
    consumer.assign(&places)?;
    Ok(consumer)
}

/// Prints records for ever. A broker that is away is part of the show.
pub(crate) async fn read(consumer: StreamConsumer, journal: &Journal) {
    loop {
        let Ok(record) = consumer.recv().await else { continue };
        let arrival = arrival(&record);
        if record.topic() == DEAD_LETTERS {
            journal.letter(&arrival);
        } else {
            journal.taken(&arrival);
        }
    }
}

fn arrival(record: &BorrowedMessage<'_>) -> Arrival {
    let shown: &[&'static str] = match record.topic() {
        DEAD_LETTERS => &FAILURE,
        _ => &["attempt_no", "ce_type"],
    };
    Arrival {
        rail: "kafka",
        participant: text(record.key()),
        sequence: header(record, "sequence_id").parse().unwrap_or(0),
        instruction: header(record, "instruction_id"),
        place: format!("{}[{}]@{}", record.topic(), record.partition(), record.offset()),
        headers: shown.iter().map(|name| (*name, header(record, name))).collect(),
        key: None,
        value: text(record.payload()),
    }
}

fn header(record: &BorrowedMessage<'_>, name: &str) -> String {
    let mut headers = record.headers().into_iter().flat_map(|headers| headers.iter());
    text(headers.find(|header| header.key == name).and_then(|header| header.value))
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}
