//! A Kafka topic of a test's own.

use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};
use uuid::Uuid;

use super::server::block_on;

/// Whatever takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Deleted when the test ends.
pub(crate) struct Topic {
    brokers: String,
    name: String,
    partitions: i32,
}

/// A record as a consumer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Vec<u8>,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
}

impl Topic {
    /// With one partition.
    pub(crate) async fn new() -> Self {
        Self::with_partitions(1).await
    }

    pub(crate) async fn with_partitions(partitions: i32) -> Self {
        let mut topic = Self::unmade();
        topic.make(partitions).await;
        topic
    }

    /// With one partition and these settings.
    pub(crate) async fn with_settings(settings: &[(&str, &str)]) -> Self {
        let mut topic = Self::unmade();
        topic.partitions = 1;
        let new = NewTopic::new(&topic.name, 1, TopicReplication::Fixed(1));
        let new = settings.iter().fold(new, |new, (name, value)| new.set(name, value));
        let made = admin(&topic.brokers).create_topics([&new], &options()).await;
        assert!(made.expect("Kafka answers").iter().all(Result::is_ok));
        topic
    }

    /// With one partition, on another broker than the usual one.
    pub(crate) async fn on(brokers: &str) -> Self {
        let mut topic = Self::unmade_on(brokers);
        topic.make(1).await;
        topic
    }

    /// A name that no topic has yet.
    pub(crate) fn unmade() -> Self {
        Self::unmade_on(
            &std::env::var("KAFKA_BROKERS").expect(
                "KAFKA_BROKERS is not set: run `make test`, which starts a broker and sets it",
            ),
        )
    }

    /// The same, but with a name that the test needs.
    pub(crate) fn called(name: &str) -> Self {
        let mut topic = Self::unmade();
        name.clone_into(&mut topic.name);
        topic
    }

    /// The same, on another broker than the usual one.
    pub(crate) fn unmade_on(brokers: &str) -> Self {
        let name = format!("trestle-test-{}", Uuid::new_v4().simple());
        Self { brokers: brokers.to_owned(), name, partitions: 0 }
    }

    pub(crate) async fn make(&mut self, partitions: i32) {
        self.partitions = partitions;
        let topic = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1));
        let results =
            admin(&self.brokers).create_topics([&topic], &options()).await.expect("Kafka answers");
        for result in results {
            result.expect("the topic can be created");
        }
    }

    /// Somebody else has made it.
    pub(crate) fn is_there(&mut self, partitions: i32) {
        self.partitions = partitions;
    }

    /// Deletes it, and makes another one of its name.
    pub(crate) async fn make_anew(&mut self, partitions: i32) {
        let admin = admin(&self.brokers);
        let deleted = admin.delete_topics(&[&self.name], &options()).await;
        deleted.expect("Kafka answers")[0].as_ref().expect("the topic can be deleted");
        self.partitions = partitions;
        let new = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1));
        let deadline = Instant::now() + PATIENCE;
        // A broker deletes in its own time.
        while admin.create_topics([&new], &options()).await.expect("Kafka answers")[0].is_err() {
            assert!(Instant::now() < deadline, "the topic is not deleted");
        }
    }

    /// Sets how large its batches may be.
    pub(crate) async fn limit(&self, bytes: usize) {
        let bytes = bytes.to_string();
        let change = AlterConfig::new(ResourceSpecifier::Topic(&self.name));
        let change = change.set("max.message.bytes", &bytes);
        let changed = admin(&self.brokers).alter_configs([&change], &options()).await;
        for result in changed.expect("Kafka answers") {
            result.expect("the topic can be changed");
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Sets one of its configurations, and leaves the others at their defaults.
    pub(crate) async fn alter(&self, name: &str, value: &str) {
        let change = AlterConfig::new(ResourceSpecifier::Topic(&self.name)).set(name, value);
        let results = admin(&self.brokers).alter_configs([&change], &options()).await;
        for result in results.expect("Kafka answers") {
            result.expect("the configuration can be changed");
        }
    }

    /// Writes records with a key each, in this order, and waits until the broker has them.
    pub(crate) async fn produce(&self, records: &[(&str, &str)]) {
        let producer: FutureProducer = client(&self.brokers).create().expect("a producer");
        for (key, value) in records {
            let record = FutureRecord::to(&self.name).key(*key).payload(*value);
            producer.send(record, PATIENCE).await.expect("the broker takes the record");
        }
    }

    /// Writes records that look as if they had been written so long ago.
    pub(crate) async fn produce_at(&self, records: &[(&str, &str)], ago: Duration) {
        let producer: FutureProducer = client(&self.brokers).create().expect("a producer");
        let at = (SystemTime::now() - ago).duration_since(SystemTime::UNIX_EPOCH).unwrap();
        for (key, value) in records {
            let record = FutureRecord::to(&self.name).key(*key).payload(*value);
            let record = record.timestamp(at.as_millis().try_into().unwrap());
            producer.send(record, PATIENCE).await.expect("the broker takes the record");
        }
    }

    /// Writes records in a transaction, and takes it back.
    pub(crate) async fn produce_aborted(&self, records: &[(&str, &str)]) {
        let producer = self.produce_openly(records).await;
        producer.abort_transaction(PATIENCE).expect("it is taken back");
    }

    /// Writes records in a transaction that is open for as long as there is its producer.
    pub(crate) async fn produce_openly(&self, records: &[(&str, &str)]) -> FutureProducer {
        let mut config = client(&self.brokers);
        let producer: FutureProducer =
            config.set("transactional.id", &self.name).create().expect("a producer");
        producer.init_transactions(PATIENCE).expect("transactions");
        producer.begin_transaction().expect("a transaction");
        for (key, value) in records {
            let record = FutureRecord::to(&self.name).key(*key).payload(*value);
            producer.send(record, PATIENCE).await.expect("the broker takes the record");
        }
        producer
    }

    /// Deletes what is before this offset, as retention does.
    pub(crate) async fn delete_before(&self, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        let before = Offset::Offset(offset);
        list.add_partition_offset(&self.name, partition, before).expect("an offset");
        let deleted = admin(&self.brokers).delete_records(&list, &options()).await;
        deleted.expect("records can be deleted");
    }

    /// Writes records once more, each into its partition, with the same key, value and headers.
    pub(crate) async fn repeat(&self, records: &[Record]) {
        let producer: FutureProducer = client(&self.brokers).create().expect("a producer");
        for record in records {
            let headers =
                record.headers.iter().fold(OwnedHeaders::new(), |headers, (key, value)| {
                    headers.insert(Header { key, value: Some(value) })
                });
            let again = FutureRecord::<[u8], [u8]>::to(&self.name)
                .partition(record.partition)
                .payload(&record.value)
                .headers(headers);
            let again = match &record.key {
                Some(key) => again.key(key.as_slice()),
                None => again,
            };
            producer.send(again, PATIENCE).await.expect("the broker takes the record");
        }
    }

    /// For each partition, up to where a group has committed it; nothing where it has not.
    pub(crate) async fn committed(&self, group: &str) -> HashMap<i32, i64> {
        let (brokers, name) = (self.brokers.clone(), self.name.clone());
        let (partitions, group) = (self.partitions, group.to_owned());
        tokio::task::spawn_blocking(move || committed(&brokers, &name, partitions, &group))
            .await
            .expect("the broker says what was committed")
    }

    /// Every record that there is.
    pub(crate) async fn consume_all(&self) -> Vec<Record> {
        let (brokers, name) = (self.brokers.clone(), self.name.clone());
        let partitions = self.partitions;
        let counted = tokio::task::spawn_blocking(move || count(&brokers, &name, partitions));
        self.consume(counted.await.expect("the broker counts")).await
    }

    /// Every record that a reader of committed ones sees.
    pub(crate) async fn consume_committed(&self) -> Vec<Record> {
        let (brokers, name) = (self.brokers.clone(), self.name.clone());
        let partitions = self.partitions;
        tokio::task::spawn_blocking(move || consume_committed(&brokers, &name, partitions))
            .await
            .expect("the consumer reads on")
    }

    /// The first `count` records, read from the beginning; fails if they do not come.
    pub(crate) async fn consume(&self, count: usize) -> Vec<Record> {
        let (brokers, name) = (self.brokers.clone(), self.name.clone());
        let partitions = self.partitions;
        tokio::task::spawn_blocking(move || consume(&brokers, &name, partitions, count))
            .await
            .expect("the consumer reads on")
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let (brokers, name) = (self.brokers.clone(), self.name.clone());
        block_on(async move {
            if let Err(error) = admin(&brokers).delete_topics(&[&name], &options()).await {
                eprintln!("cannot delete a test's topic: {error}");
            }
        });
    }
}

fn count(brokers: &str, name: &str, partitions: i32) -> usize {
    let consumer: BaseConsumer = client(brokers).create().expect("a consumer");
    let marks = (0..partitions)
        .map(|partition| consumer.fetch_watermarks(name, partition, PATIENCE).expect("its ends"));
    marks.map(|(low, high)| usize::try_from(high - low).expect("a number of records")).sum()
}

fn committed(brokers: &str, name: &str, partitions: i32, group: &str) -> HashMap<i32, i64> {
    let consumer: BaseConsumer =
        client(brokers).set("group.id", group).create().expect("a consumer");
    let mut asked = TopicPartitionList::new();
    asked.add_partition_range(name, 0, partitions - 1);
    // A new group has no coordinator yet, so it has committed nothing.
    let Ok(answer) = consumer.committed_offsets(asked, PATIENCE) else { return HashMap::new() };
    let offsets = answer.elements_for_topic(name).into_iter().filter_map(|partition| {
        let Offset::Offset(offset) = partition.offset() else { return None };
        Some((partition.partition(), offset))
    });
    offsets.collect()
}

/// Reads committed records from the beginning; says where a partition ends if asked to.
fn reader(brokers: &str, name: &str, partitions: i32, tells_the_end: bool) -> BaseConsumer {
    let consumer: BaseConsumer = client(brokers)
        .set("group.id", name)
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", tells_the_end.to_string())
        .set("isolation.level", "read_committed")
        .create()
        .expect("a consumer");
    let mut assignment = TopicPartitionList::new();
    for partition in 0..partitions {
        assignment.add_partition_offset(name, partition, Offset::Beginning).expect("an offset");
    }
    consumer.assign(&assignment).expect("an assignment");
    consumer
}

fn consume(brokers: &str, name: &str, partitions: i32, count: usize) -> Vec<Record> {
    let consumer = reader(brokers, name, partitions, false);
    let deadline = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    while records.len() < count {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{} of {count} records came", records.len());
        if let Some(message) = consumer.poll(left) {
            records.push(record(&message.expect("a record")));
        }
    }
    records
}

fn consume_committed(brokers: &str, name: &str, partitions: i32) -> Vec<Record> {
    let consumer = reader(brokers, name, partitions, true);
    let deadline = Instant::now() + PATIENCE;
    let mut records = Vec::new();
    let mut ended = std::collections::HashSet::new();
    while ended.len() < usize::try_from(partitions).expect("a number of partitions") {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "the topic was not read to its end");
        match consumer.poll(left) {
            Some(Ok(message)) => records.push(record(&message)),
            Some(Err(rdkafka::error::KafkaError::PartitionEOF(partition))) => {
                ended.insert(partition);
            }
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
    records
}

fn record(message: &impl Message) -> Record {
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        headers
            .iter()
            .map(|header| (header.key.to_owned(), header.value.unwrap_or_default().to_vec()))
            .collect()
    });
    Record {
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().unwrap_or_default().to_vec(),
        headers,
        partition: message.partition(),
        offset: message.offset(),
    }
}

fn client(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", brokers);
    config
}

fn admin(brokers: &str) -> AdminClient<DefaultClientContext> {
    client(brokers).create().expect("an admin client")
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE))
}
