//! A topic, and a consumer that says when each record came.

use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
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

/// Reads `count` records and tells, for each, its `instruction_id` and when it came.
pub(crate) fn consume(topic: &str, count: usize) -> Vec<(String, Instant)> {
    let consumer: BaseConsumer = client()
        .set("group.id", topic)
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "500")
        .create()
        .unwrap();
    let mut assignment = TopicPartitionList::new();
    for partition in 0..PARTITIONS {
        assignment.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    }
    consumer.assign(&assignment).unwrap();
    let mut seen = Vec::with_capacity(count);
    while seen.len() < count {
        let Some(message) = consumer.poll(Duration::from_secs(30)) else {
            panic!("{} of {count} records came", seen.len());
        };
        let message = message.unwrap();
        let headers = message.headers().unwrap();
        let id = headers.iter().find(|header| header.key == "instruction_id").unwrap();
        let id = String::from_utf8(id.value.unwrap().to_vec()).unwrap();
        seen.push((id, Instant::now()));
    }
    seen
}
