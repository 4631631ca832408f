//! What is found out about a secured broker without a record being written, and how a topic there is read.

use trestle::config::KafkaRailConfig;
use trestle::rails::kafka::{Reader, examine};

use super::kafka::config;
use super::support::{Access, PASSWORD, SecuredKafka, Topic};

fn settings(access: &Access, topic: &Topic) -> KafkaRailConfig {
    config(&access.brokers, topic.name(), &access.toml())
}

/// The code of what is in the way, if anything is.
async fn obstacle(access: &Access, topic: &Topic) -> Option<String> {
    let (config, topics) = (settings(access, topic), vec![topic.name().to_owned()]);
    let examined = tokio::task::spawn_blocking(move || examine("sepa", &config, &topics).unwrap());
    match examined.await.unwrap() {
        Ok(cluster) => {
            assert_eq!(cluster.admission, Ok(()));
            let (_, facts) = &cluster.topics[0];
            assert_eq!(facts.as_ref().map(|facts| facts.partitions), Ok(1));
            None
        }
        Err(trouble) => {
            assert!(!trouble.words.contains(PASSWORD), "{}", trouble.words);
            Some(trouble.code)
        }
    }
}

#[tokio::test]
async fn what_keeps_us_out_of_a_secured_broker_is_named_and_nothing_is_written() {
    let kafka = SecuredKafka::shared().await;
    let topic = Topic::on(&kafka.open()).await;
    let (password, certificate) = (kafka.by_password("SCRAM-SHA-512"), kafka.by_certificate());
    let foreign = kafka.file("foreign-ca.pem");
    for (access, expected) in [
        (password.clone(), None),
        (certificate.clone(), None),
        (password.clone().with("ssl.ca.location", &foreign), Some("KAFKA_SSL")),
        (password.with("sasl.password", "wrong-hunter2"), Some("KAFKA_AUTHENTICATION")),
        (
            certificate.without("ssl.certificate.location").without("ssl.key.location"),
            Some("KAFKA_SSL"),
        ),
    ] {
        assert_eq!(obstacle(&access, &topic).await.as_deref(), expected);
    }
    assert_eq!(topic.consume_all().await, []);
}

#[tokio::test]
async fn a_topic_of_a_secured_broker_is_read_without_a_group() {
    let kafka = SecuredKafka::shared().await;
    let topic = Topic::on(&kafka.open()).await;
    topic.produce(&[("alice", "1"), ("bob", "2")]).await;
    let config = settings(&kafka.by_password("SCRAM-SHA-512"), &topic);
    let name = topic.name().to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let mut keys = Vec::new();
        let reader = Reader::open("sepa", &config, &name, None).unwrap();
        let spans = reader.read(|record| keys.extend(record.participant_id.map(str::to_owned)));
        (keys, spans.unwrap())
    });
    let (keys, spans) = read.await.unwrap();
    assert_eq!(keys, ["alice", "bob"]);
    assert_eq!((spans[0].start, spans[0].end), (0, 2));
    assert!(topic.committed("trestle-verify").await.is_empty(), "it commits nothing");
}
