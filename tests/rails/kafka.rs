//! The Kafka rail with a broker that does what it should.

use std::sync::Arc;

use figment::Figment;
use figment::providers::{Format, Toml};
use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, NewTopic, ResourceSpecifier, TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use trestle::config::KafkaRailConfig;
use trestle::delivery::Outcome;
use trestle::rails::Rail;
use trestle::rails::kafka::KafkaRail;
use uuid::Uuid;

use super::kafka_lanes::{
    PATIENCE, deliver, deliver_all, deliver_one, in_doubt, lane, refused, row, was_given_back,
};
use super::support::proxy::{Mode, Proxy};
use super::support::{Record, Topic};

pub(crate) fn brokers() -> String {
    std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set: run `make test`")
}

/// The configuration of a rail, with `more` in TOML.
pub(crate) fn config(brokers: &str, topic: &str, more: &str) -> KafkaRailConfig {
    let toml = format!("kind = \"kafka\"\nbrokers = \"{brokers}\"\ntopic = \"{topic}\"\n{more}");
    Figment::from(Toml::string(&toml)).extract().expect("a configuration")
}

pub(crate) fn rail(brokers: &str, topic: &str, more: &str) -> KafkaRail {
    KafkaRail::new("test", &config(brokers, topic, more)).expect("a rail")
}

fn admin() -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", brokers()).create().expect("an admin client")
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE))
}

/// Changes the configuration of a topic.
pub(crate) async fn alter(topic: &str, key: &str, value: &str) {
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(key, value);
    let results = admin().alter_configs([&change], &options()).await.expect("Kafka answers");
    for result in results {
        result.expect("the topic can be changed");
    }
}

pub(crate) async fn create(topic: &str) {
    let topic = NewTopic::new(topic, 1, TopicReplication::Fixed(1));
    for result in admin().create_topics([&topic], &options()).await.expect("Kafka answers") {
        result.expect("the topic can be created");
    }
}

pub(crate) async fn delete(topic: &str) {
    admin().delete_topics(&[topic], &options()).await.expect("Kafka answers");
}

fn header<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    let found = record.headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| std::str::from_utf8(value).unwrap())
}

/// The sequence numbers of one participant, in the order in which the topic has them.
pub(crate) fn sequence(records: &[Record], participant: &str) -> Vec<i64> {
    let own = records.iter().filter(|record| record.key.as_deref() == Some(participant.as_bytes()));
    own.map(|record| header(record, "sequence_id").unwrap().parse().unwrap()).collect()
}

/// The same without repetitions: what was in doubt may come twice, but first in order.
pub(crate) fn first_occurrences(records: &[Record], participant: &str) -> Vec<i64> {
    let mut seen = Vec::new();
    for number in sequence(records, participant) {
        if !seen.contains(&number) {
            seen.push(number);
        }
    }
    seen
}

/// Every record of a topic with one partition, up to one that is sent now; as often as it takes, because the rail
/// may still wait before it connects again.
pub(crate) async fn everything(rail: &dyn Rail, topic: &Topic) -> Vec<Record> {
    let reference = deliver_one(rail, || row("the last", 1, "{}")).await;
    let (_, offset) = reference.rsplit_once('@').expect("topic/partition@offset");
    topic.consume(offset.parse::<usize>().expect("an offset") + 1).await
}

#[tokio::test]
async fn records_arrive_in_order_with_key_headers_and_the_payload_byte_for_byte() {
    let topic = Topic::with_partitions(3).await;
    let rail = rail(&brokers(), topic.name(), "source = \"bank\"");
    let payload = "{\"amount\": 12345678901234567890.10,   \"name\": \"Žofie\\u0000\"}";
    let mut lanes = Vec::new();
    for participant in ["ann", "bob", "cid"] {
        let mut rows: Vec<_> = (1..=50).map(|n| row(participant, n, payload)).collect();
        rows[0].headers.push(("traceparent".to_owned(), "00-abc-def-01".to_owned()));
        lanes.push(deliver(&rail, rows));
    }
    let mut references = Vec::new();
    for lane in lanes {
        references.extend(lane.references().await);
    }
    let records = topic.consume(150).await;
    let mut expected: Vec<String> = records
        .iter()
        .map(|record| format!("{}/{}@{}", topic.name(), record.partition, record.offset))
        .collect();
    references.sort();
    expected.sort();
    assert_eq!(references, expected);
    for participant in ["ann", "bob", "cid"] {
        assert_eq!(sequence(&records, participant), (1..=50).collect::<Vec<_>>());
    }
    assert!(records.iter().all(|record| record.value == payload.as_bytes()));
    let traced: Vec<_> = records.iter().filter(|r| header(r, "traceparent").is_some()).collect();
    assert_eq!(traced.len(), 3);
    assert_eq!(header(traced[0], "ce_source"), Some("bank"));
    assert_eq!(header(traced[0], "ce_type"), Some("payment.test"));
    assert_eq!(header(traced[0], "traceparent"), Some("00-abc-def-01"));
}

#[tokio::test]
async fn a_dead_letter_keeps_key_value_and_headers_and_goes_to_the_fixed_topic() {
    let topic = Topic::new().await;
    let config = config(&brokers(), "payments", "topics = [\"urgent\"]");
    let rail = KafkaRail::for_dead_letters(&config, topic.name()).unwrap();
    let mut letter = row("ann", 4, "{\"a\":1}");
    letter.rail_type = "dlq".to_owned();
    for (name, value) in [("topic", "urgent"), ("mine", "1"), ("dlq_error_code", "HTTP_400")] {
        letter.headers.push((name.to_owned(), value.to_owned()));
    }
    assert_eq!(&*rail.destination(&letter).unwrap(), format!("dlq:{}", topic.name()));
    assert_eq!(rail.only_destination().as_deref(), Some(&*format!("dlq:{}", topic.name())));
    deliver(&rail, vec![letter]).references().await;
    let record = &topic.consume(1).await[0];
    assert_eq!(record.key.as_deref(), Some(&b"ann"[..]));
    assert_eq!(record.value, b"{\"a\":1}");
    assert_eq!(header(record, "mine"), Some("1"));
    assert_eq!(header(record, "dlq_error_code"), Some("HTTP_400"));
}

#[tokio::test]
async fn what_the_relay_has_refused_is_not_sent() {
    let topic = Topic::new().await;
    let rail = rail(&brokers(), topic.name(), "");
    let sent = lane((1..=3).map(|n| row("ann", n, "{}")).collect(), false);
    sent.lane.report(1, Outcome::Refused(trestle::delivery::Failure::new("PAYLOAD_INVALID", "")));
    rail.deliver(Arc::clone(&sent.lane));
    let settlements = sent.settlements().await;
    assert_eq!(refused(&settlements[1]), "PAYLOAD_INVALID");
    deliver(&rail, vec![row("ann", 4, "{}")]).references().await;
    assert_eq!(sequence(&topic.consume(3).await, "ann"), [1, 3, 4]);
}

#[tokio::test]
async fn a_lane_that_is_not_ours_any_more_is_not_sent() {
    let topic = Topic::new().await;
    let rail = rail(&brokers(), topic.name(), "");
    let sent = lane(vec![row("ann", 1, "{}")], false);
    sent.lane.lease().lose();
    rail.deliver(Arc::clone(&sent.lane));
    assert!(was_given_back(&sent.settlements().await[0]));
    deliver(&rail, vec![row("ann", 2, "{}")]).references().await;
    assert_eq!(sequence(&topic.consume(1).await, "ann"), [2]);
}

#[tokio::test]
async fn a_row_without_a_topic_is_refused_and_a_row_for_another_topic_waits_for_its_turn() {
    let (usual, urgent) = (Topic::new().await, Topic::new().await);
    let more = format!("topics = [\"{}\"]", urgent.name());
    let rail = rail(&brokers(), usual.name(), &more);
    assert_eq!(rail.only_destination(), None);
    deliver(&rail, vec![row("ann", 0, "{}")]).references().await;
    let mut rows: Vec<_> = (1..=4).map(|n| row("ann", n, "{}")).collect();
    rows[1].headers.push(("topic".to_owned(), "elsewhere".to_owned()));
    rows[2].headers.push(("topic".to_owned(), urgent.name().to_owned()));
    let settlements = deliver(&rail, rows).settlements().await;
    assert_eq!(refused(&settlements[1]), "TOPIC_NOT_ALLOWED");
    assert_eq!(settlements.len(), 3, "row 4 goes back with row 3");
    assert!(was_given_back(&settlements[2]));
    let mut third = row("ann", 3, "{}");
    third.headers.push(("topic".to_owned(), urgent.name().to_owned()));
    deliver(&rail, vec![third]).references().await;
    assert_eq!(sequence(&urgent.consume(1).await, "ann"), [3]);
}

#[tokio::test]
async fn a_lane_that_halts_stops_at_a_row_that_is_refused() {
    let topic = Topic::new().await;
    alter(topic.name(), "max.message.bytes", "2000").await;
    let rail = rail(&brokers(), topic.name(), "");
    let mut rows: Vec<_> = (1..=5).map(|n| row("ann", n, "{}")).collect();
    rows[3].payload = "x".repeat(3_000);
    let sent = lane(rows, true);
    rail.deliver(Arc::clone(&sent.lane));
    let settlements = sent.settlements().await;
    assert_eq!(settlements.len(), 4);
    assert_eq!(refused(&settlements[3]), "MESSAGE_TOO_LARGE");
    deliver(&rail, vec![row("bob", 1, "{}")]).references().await;
    let records = topic.consume(4).await;
    assert_eq!(sequence(&records, "ann"), [1, 2, 3]);
}

/// The broker gets what is under way, and its answers get lost: nothing brings a next row.
#[tokio::test]
async fn a_lane_that_halts_has_one_row_under_way_and_another_has_all_of_them() {
    for (halts, under_way) in [(true, vec![1]), (false, vec![1, 2, 3, 4, 5])] {
        let (topic, proxy) = (Topic::new().await, Proxy::to_kafka());
        let rail = rail(proxy.address(), topic.name(), "delivery_timeout_seconds = 2");
        // To a partition that does not know the producer yet, one row goes ahead whatever the lane is.
        deliver(&rail, vec![row("bob", 1, "{}")]).references().await;
        proxy.set(Mode::LoseAnswers);
        let sent = lane((1..=5).map(|n| row("ann", n, "{}")).collect(), halts);
        rail.deliver(Arc::clone(&sent.lane));
        in_doubt(&sent.settlements().await[0]);
        assert_eq!(sequence(&topic.consume_all().await, "ann"), under_way, "halts: {halts}");
    }
}

#[tokio::test]
async fn a_missing_topic_is_unavailable_and_works_when_it_is_created() {
    let name = format!("trestle-test-{}", Uuid::new_v4().simple());
    let rail = rail(&brokers(), &name, "");
    let settlements = deliver(&rail, vec![row("ann", 1, "{}")]).settlements().await;
    assert!(was_given_back(&settlements[0]), "{settlements:?}");
    create(&name).await;
    deliver_all(&rail, || vec![row("ann", 1, "{}")]).await;
    delete(&name).await;
}
