//! The Kafka rail and records that are too large.

use trestle::delivery::Row;

use super::kafka::{alter, brokers, everything, first_occurrences, rail};
use super::kafka_lanes::{deliver, deliver_all, refused, row};
use super::support::{Record, Topic};

const LIMIT: usize = 2_000;

fn rows(participant: &str, large: Option<usize>) -> Vec<Row> {
    let mut rows: Vec<_> = (1..=20).map(|number| row(participant, number, "{}")).collect();
    if let Some(index) = large {
        rows[index].payload = "x".repeat(LIMIT);
    }
    rows
}

/// Every lane's rows but the large one are there, in order.
fn check(records: &[Record]) {
    let all: Vec<i64> = (1..=20).collect();
    assert_eq!(first_occurrences(records, "ann"), all);
    assert_eq!(first_occurrences(records, "cid"), all);
    let without: Vec<i64> = all.into_iter().filter(|number| *number != 11).collect();
    assert_eq!(first_occurrences(records, "bob"), without);
}

#[tokio::test]
async fn only_the_row_that_is_too_large_for_its_topic_is_refused() {
    let topic = Topic::new().await;
    alter(topic.name(), "max.message.bytes", &LIMIT.to_string()).await;
    let rail = rail(&brokers(), topic.name(), "");
    let (ann, bob, cid) = (
        deliver(&rail, rows("ann", None)),
        deliver(&rail, rows("bob", Some(10))),
        deliver(&rail, rows("cid", None)),
    );
    assert_eq!(refused(&bob.settlements().await[10]), "MESSAGE_TOO_LARGE");
    ann.references().await;
    cid.references().await;
    check(&everything(&rail, &topic).await);
}

/// The broker then refuses whole batches, which the rows in them did not deserve. The batches are
/// small, so that others are behind the refused one: they must not get past it.
#[tokio::test]
async fn a_limit_that_is_lowered_behind_our_back_makes_no_other_row_fail_and_reorders_none() {
    let topic = Topic::new().await;
    let rail = rail(&brokers(), topic.name(), "[properties]\n\"batch.num.messages\" = \"3\"");
    deliver(&rail, vec![row("zoe", 1, "{}")]).references().await;
    alter(topic.name(), "max.message.bytes", &LIMIT.to_string()).await;
    let (ann, bob, cid) = tokio::join!(
        deliver_all(&rail, || rows("ann", None)),
        deliver_all(&rail, || rows("bob", Some(10))),
        deliver_all(&rail, || rows("cid", None)),
    );
    assert_eq!((ann.len(), cid.len()), (0, 0));
    assert_eq!(bob, ["MESSAGE_TOO_LARGE"]);
    check(&everything(&rail, &topic).await);
}

/// What we measure is what the broker measures: to the byte.
#[tokio::test]
async fn a_record_of_exactly_the_limit_is_delivered_and_one_byte_more_is_refused() {
    let topic = Topic::new().await;
    alter(topic.name(), "max.message.bytes", &LIMIT.to_string()).await;
    let rail = rail(&brokers(), topic.name(), "");
    let mut taken = 0;
    for length in (1_000..LIMIT).rev() {
        let sent = deliver(&rail, vec![row("ann", 1, &"x".repeat(length))]).settlements().await;
        if let trestle::delivery::Settlement::Outcome(trestle::delivery::Outcome::Refused(
            failure,
        )) = &sent[0]
        {
            assert_eq!(failure.error_code, "MESSAGE_TOO_LARGE");
            continue;
        }
        super::kafka_lanes::reference(&sent[0]);
        taken = length;
        break;
    }
    let size = measured_by_the_broker(&topic).await;
    assert_eq!(size, LIMIT, "a payload of {taken} bytes is the largest that was sent");
}

/// The size of the only batch of a topic: the broker refuses it when the limit is one byte lower.
async fn measured_by_the_broker(topic: &Topic) -> usize {
    use rdkafka::ClientConfig;
    use rdkafka::message::{Header, OwnedHeaders};
    use rdkafka::producer::{FutureProducer, FutureRecord};
    let record = topic.consume(1).await.remove(0);
    let producer: FutureProducer =
        ClientConfig::new().set("bootstrap.servers", brokers()).create().unwrap();
    let mut limit = LIMIT;
    loop {
        alter(topic.name(), "max.message.bytes", &limit.to_string()).await;
        let headers = record.headers.iter().fold(OwnedHeaders::new(), |all, (key, value)| {
            all.insert(Header { key, value: Some(value) })
        });
        let copy = FutureRecord::to(topic.name())
            .key(record.key.as_ref().unwrap())
            .payload(&record.value)
            .headers(headers);
        if producer.send(copy, super::kafka_lanes::PATIENCE).await.is_err() {
            return limit + 1;
        }
        limit -= 1;
    }
}

/// A dead letter has no other place to go: it says what failed and why, and the ledger has the rest.
#[tokio::test]
async fn a_dead_letter_that_is_too_large_arrives_without_its_value_and_the_producers_headers() {
    for properties in ["", "[properties]\n\"message.max.bytes\" = \"2000\""] {
        let topic = Topic::new().await;
        if properties.is_empty() {
            alter(topic.name(), "max.message.bytes", &LIMIT.to_string()).await;
        }
        let rail = rail(&brokers(), topic.name(), properties);
        let mut letter = row("ann", 1, &"x".repeat(LIMIT));
        letter.rail_type = "dlq".to_owned();
        letter.headers = [("note", "y".repeat(LIMIT)), ("dlq_reason", "too large".to_owned())]
            .map(|(name, value)| (name.to_owned(), value))
            .into();
        deliver(&rail, vec![letter]).references().await;
        let record = topic.consume(1).await.remove(0);
        assert_eq!(record.value, b"{}");
        let header =
            |name| record.headers.iter().find(|(key, _)| key == name).map(|(_, it)| &it[..]);
        assert_eq!(header("dlq_reason"), Some(&b"too large"[..]));
        assert_eq!(header("dlq_shortened"), Some(&b"true"[..]));
        assert_eq!(header("note"), None);
    }
}

/// A broker that has nothing of a producer yet takes any sequence number: it would take the second
/// batch although it refused the first.
#[tokio::test]
async fn the_first_batch_for_a_partition_is_no_exception() {
    let topic = Topic::with_partitions(2).await;
    let small = "[properties]\n\"batch.num.messages\" = \"3\"";
    let scout = rail(&brokers(), topic.name(), small);
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for number in 0..12 {
        let name = format!("p{number}");
        let reference = deliver(&scout, vec![row(&name, 0, "{}")]).references().await.remove(0);
        if reference.contains("/0@") { here.push(name) } else { there.push(name) }
    }
    let rail = rail(&brokers(), topic.name(), small);
    deliver(&rail, vec![row(&here[0], 0, "{}")]).references().await;
    alter(topic.name(), "max.message.bytes", &LIMIT.to_string()).await;
    let refused = deliver_all(&rail, || rows(&there[0], Some(2))).await;
    assert_eq!(refused, ["MESSAGE_TOO_LARGE"]);
    let records = topic.consume(12 + 1 + 19).await;
    let expected: Vec<i64> = (0..=20).filter(|number| *number != 3).collect();
    assert_eq!(first_occurrences(&records, &there[0]), expected);
}
