//! The Kafka rail and a broker that lets nobody in without the right credentials.

use std::ops::RangeInclusive;
use std::sync::Arc;

use futures_util::future::join_all;
use trestle::delivery::{BreakerState, Row};
use trestle::rails::kafka::KafkaRail;

use super::kafka::{everything, rail, sequence};
use super::kafka_lanes::{deliver, deliver_all, in_doubt, row, was_given_back};
use super::support::acls::carry_out;
use super::support::{Access, PASSWORD, PAUPER, SecuredKafka, Topic};

/// Half of it is what a rail gives a broker to say anything at all: enough for one that turns us
/// away.
const BRIEF: &str = "delivery_timeout_seconds = 4\n";

fn open(access: &Access, topic: &Topic, more: &str) -> KafkaRail {
    rail(&access.brokers, topic.name(), &(more.to_owned() + &access.toml()))
}

fn rows(numbers: RangeInclusive<i64>) -> Vec<Row> {
    numbers.map(|number| row("ann", number, "{}")).collect()
}

/// What is wrong, how to do it, and the right way.
type Case = (&'static str, Access, Access);

/// The rail is unavailable and every row is given back, as if it had never been tried.
async fn is_turned_away(what: &str, rail: &KafkaRail) {
    let sent = deliver(rail, rows(1..=20));
    let breaker = Arc::clone(&sent.breaker);
    let settlements = sent.settlements().await;
    assert!(settlements.iter().all(was_given_back), "{what}: {settlements:?}");
    assert_eq!(breaker.state(), BreakerState::Open, "{what}");
}

/// The rail is unavailable: every row is given back, or will be tried again without being counted.
async fn waits(what: &str, rail: &KafkaRail) {
    let sent = deliver(rail, rows(1..=20));
    let breaker = Arc::clone(&sent.breaker);
    for settlement in sent.settlements().await {
        assert!(was_given_back(&settlement) || !in_doubt(&settlement).is_empty(), "{what}");
    }
    assert_eq!(breaker.state(), BreakerState::Open, "{what}");
}

async fn all_arrive_in_order(rail: &KafkaRail, topic: &Topic) {
    assert_eq!(deliver_all(rail, || rows(1..=20)).await, [""; 0]);
    let records = everything(rail, topic).await;
    assert_eq!(sequence(&records, "ann"), (1..=20).collect::<Vec<_>>());
}

async fn costs_no_row((what, wrong, right): Case) {
    let topic = Topic::on(&SecuredKafka::shared().await.open()).await;
    let turned_away = open(&wrong, &topic, BRIEF);
    is_turned_away(what, &turned_away).await;
    is_turned_away(what, &turned_away).await;
    all_arrive_in_order(&open(&right, &topic, ""), &topic).await;
}

/// A rail that is turned away does nothing but wait, so all of them wait together.
async fn cost_no_row(cases: impl IntoIterator<Item = Case>) {
    join_all(cases.into_iter().map(costs_no_row)).await;
}

#[tokio::test]
async fn whoever_lacks_the_password_is_turned_away_and_no_row_fails() {
    let kafka = SecuredKafka::shared().await;
    let right = kafka.by_password("SCRAM-SHA-512");
    let older = kafka.by_password("SCRAM-SHA-256");
    let with = |property, value| right.clone().with(property, value);
    cost_no_row([
        ("wrong password", with("sasl.password", "wrong"), right.clone()),
        ("wrong password, 256", older.clone().with("sasl.password", "wrong"), older),
        ("unknown user", with("sasl.username", "nobody"), right.clone()),
        ("mechanism", with("sasl.mechanism", "PLAIN"), right.clone()),
        ("no TLS", with("security.protocol", "SASL_PLAINTEXT"), right.clone()),
        ("no password", with("security.protocol", "SSL"), right.clone()),
    ])
    .await;
}

#[tokio::test]
async fn whoever_lacks_the_certificate_is_turned_away_and_no_row_fails() {
    let kafka = SecuredKafka::shared().await;
    let right = kafka.by_certificate();
    let missing = right.clone().without("ssl.certificate.location").without("ssl.key.location");
    let foreign = right
        .clone()
        .with("ssl.certificate.location", &kafka.file("foreign-client.pem"))
        .with("ssl.key.location", &kafka.file("foreign-client.key"));
    let plain = right.clone().with("security.protocol", "PLAINTEXT");
    cost_no_row([
        ("no certificate", missing, right.clone()),
        ("foreign certificate", foreign, right.clone()),
        ("no TLS", plain, right),
    ])
    .await;
}

/// Whoever has any certificate of the authority could else pass for the broker. That the broker is
/// reached under that other name at all shows when nobody looks at names.
#[tokio::test]
async fn a_broker_that_cannot_show_who_it_is_gets_no_row() {
    let kafka = SecuredKafka::shared().await;
    let foreign = kafka.file("foreign-ca.pem");
    let [password, certificate] = [kafka.by_password("SCRAM-SHA-512"), kafka.by_certificate()];
    let renamed = certificate.clone().at("localhost");
    let unchecked = renamed.clone().with("ssl.endpoint.identification.algorithm", "none");
    cost_no_row([
        ("foreign authority", password.clone().with("ssl.ca.location", &foreign), password),
        ("foreign authority", certificate.clone().with("ssl.ca.location", &foreign), certificate),
        ("another name", renamed, unchecked),
    ])
    .await;
}

/// Keys that stand in the configuration itself, or come from where secrets come from.
#[tokio::test]
async fn certificates_may_be_values_of_properties() {
    let kafka = SecuredKafka::shared().await;
    let read = |name: &str| std::fs::read_to_string(kafka.file(name)).unwrap();
    let access = kafka
        .by_certificate()
        .without("ssl.ca.location")
        .without("ssl.certificate.location")
        .without("ssl.key.location")
        .with("ssl.ca.pem", &read("ca.pem"))
        .with("ssl.certificate.pem", &read("client.pem"))
        .with("ssl.key.pem", &read("client.key"));
    let topic = Topic::on(&kafka.open()).await;
    all_arrive_in_order(&open(&access, &topic, ""), &topic).await;
}

/// The other way to mend it: nobody touches the bridge, and its rail finds out by itself.
#[tokio::test]
async fn a_password_that_the_broker_learns_later_lets_the_same_rail_in() {
    let kafka = SecuredKafka::shared().await;
    let access = kafka.by_password("SCRAM-SHA-512").with("sasl.username", "newcomer");
    let topic = Topic::on(&kafka.open()).await;
    let rail = open(&access, &topic, BRIEF);
    is_turned_away("unknown user", &rail).await;
    kafka.set_password("newcomer", PASSWORD).await;
    all_arrive_in_order(&rail, &topic).await;
}

/// A user who is let in and may not write costs no row either: whether it may see the topic or not, and
/// whether it may write anywhere else. What librdkafka had in its hands may count as sent.
#[tokio::test]
async fn a_right_that_the_user_is_given_later_lets_the_same_rail_in() {
    let kafka = SecuredKafka::shared().await;
    let access = kafka.by_password("SCRAM-SHA-512").with("sasl.username", PAUPER);
    let (topic, other) = (Topic::on(&kafka.open()).await, Topic::on(&kafka.open()).await);
    let give = async |operation: &str, topic: &Topic| {
        let line = format!(
            "kafka-acls.sh --bootstrap-server b --add --allow-principal User:… --operation {operation} --topic {}",
            topic.name()
        );
        let brokers = kafka.open();
        tokio::task::spawn_blocking(move || carry_out(&line, PAUPER, &brokers)).await.unwrap();
    };
    let rail = open(&access, &topic, BRIEF);
    is_turned_away("no right", &rail).await;
    give("Describe", &topic).await;
    waits("may not write at all", &rail).await;
    give("Write", &other).await;
    waits("may write elsewhere", &rail).await;
    give("Write", &topic).await;
    all_arrive_in_order(&rail, &topic).await;
}
