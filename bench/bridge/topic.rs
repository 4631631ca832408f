//! A topic, and a consumer that says when each record came.

use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};

pub(crate) const PARTITIONS: i32 = 12;

fn client() -> ClientConfig {
    let brokers =
        std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set: run `make bench`");
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}

pub(crate) async fn make(name: &str) -> String {
    let name = format!("trestle-bench-{name}-{}", uuid::Uuid::new_v4().simple());
    let admin: AdminClient<DefaultClientContext> = client().create().unwrap();
    let topic = NewTopic::new(&name, PARTITIONS, TopicReplication::Fixed(1));
    let made = admin.create_topics([&topic], &AdminOptions::new()).await.unwrap();
    assert!(made.iter().all(Result::is_ok), "{made:?}");
    name
}

/// Writes `rows` records with the headers of a bridge, each participant's into one partition.
pub(crate) fn fill(topic: &str, rows: u32, participants: u32, id_prefix: &str) {
    let producer: BaseProducer = client()
        .set("enable.idempotence", "true")
        .set("queue.buffering.max.messages", "200000")
        .create()
        .unwrap();
    let value = "x".repeat(512);
    for number in 0..rows {
        let participant = number % participants;
        let partition = i32::try_from(participant).unwrap() % PARTITIONS;
        let key = format!("participant-{participant}");
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("sequence_id", (number / participants + 1).to_string()),
            ("instruction_id", format!("instruction-{number}")),
            ("idempotency_key", "payment".to_owned()),
            ("attempt_no", "1".to_owned()),
            ("ce_specversion", "1.0".to_owned()),
            ("ce_id", format!("{id_prefix}{number:012x}")),
            ("ce_type", "payment.kafka".to_owned()),
            ("ce_source", "trestle".to_owned()),
            ("ce_subject", key.clone()),
            ("ce_time", "2026-11-17T06:00:00.123456Z".to_owned()),
        ];
        let headers = headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
            headers.insert(Header { key, value: Some(value) })
        });
        let record = BaseRecord::to(topic).partition(partition).key(&key).payload(&value);
        let mut record = record.headers(headers);
        while let Err((error, returned)) = producer.send(record) {
            assert_eq!(error.rdkafka_error_code(), Some(RDKafkaErrorCode::QueueFull), "{error}");
            producer.poll(Duration::from_millis(100));
            record = returned;
        }
        producer.poll(Duration::ZERO);
    }
    producer.flush(Duration::from_secs(60)).unwrap();
}

const BEGINNING: [i64; PARTITIONS as usize] = [0; PARTITIONS as usize];

/// Where each partition of a topic ends now.
pub(crate) fn ends(topic: &str) -> [i64; PARTITIONS as usize] {
    let consumer: BaseConsumer = client().set("group.id", topic).create().unwrap();
    std::array::from_fn(|partition| {
        let partition = i32::try_from(partition).unwrap();
        consumer.fetch_watermarks(topic, partition, Duration::from_secs(10)).unwrap().1
    })
}

/// Reads a new topic: `count` records, or as many as come without a pause of half a minute, and tells, for each, its
/// `instruction_id` and when it came.
pub(crate) fn consume(topic: &str, count: usize) -> Vec<(String, Instant)> {
    consume_from(topic, &BEGINNING, count)
}

/// The same, of a topic that has been used before.
pub(crate) fn consume_from(topic: &str, from: &[i64], count: usize) -> Vec<(String, Instant)> {
    let consumer: BaseConsumer = client()
        .set("group.id", topic)
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "500")
        // Whatever happens to a topic that has just been made: nothing of it may be passed over.
        .set("auto.offset.reset", "earliest")
        .create()
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    for (partition, offset) in (0..PARTITIONS).zip(from) {
        assignment.add_partition_offset(topic, partition, Offset::Offset(*offset)).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let mut seen = Vec::with_capacity(count);
    while seen.len() < count {
        let Some(message) = consumer.poll(Duration::from_secs(30)) else { break };
        let message = message.unwrap();
        let headers = message.headers().unwrap();
        let id = headers.iter().find(|header| header.key == "instruction_id").unwrap();
        let id = String::from_utf8(id.value.unwrap().to_vec()).unwrap();
        seen.push((id, Instant::now()));
    }
    seen
}
