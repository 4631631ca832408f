//! The Kafka rail when something is in its way.

use std::time::{Duration, Instant};

use trestle::delivery::{Row, Settlement};
use trestle::rails::Rail;
use trestle::rails::kafka::KafkaRail;

use super::kafka::{brokers, everything, first_occurrences, rail, sequence};
use super::kafka_lanes::{Sent, deliver, deliver_all, in_doubt, row, was_given_back};
use super::support::Topic;
use crate::support::proxy::{Mode, Proxy};

/// Short enough for a test.
const TIMEOUT: &str = "delivery_timeout_seconds = 2";
const TIMEOUT_SECONDS: u64 = 2;

fn rows(participant: &str, numbers: std::ops::RangeInclusive<i64>) -> Vec<Row> {
    numbers.map(|number| row(participant, number, "{}")).collect()
}

#[tokio::test]
async fn a_broker_that_falls_silent_leaves_rows_in_doubt_in_time_and_is_used_when_it_is_back() {
    let topic = Topic::new().await;
    let proxy = Proxy::to_kafka();
    let rail = rail(proxy.address(), topic.name(), TIMEOUT);
    deliver(&rail, rows("ann", 1..=3)).references().await;
    proxy.set(Mode::Hold);
    let started = Instant::now();
    let settlements = deliver(&rail, rows("ann", 4..=9)).settlements().await;
    assert!(started.elapsed() <= Duration::from_secs(TIMEOUT_SECONDS), "{:?}", started.elapsed());
    assert_eq!(settlements.len(), 1, "the rest goes back with the first");
    assert_eq!(in_doubt(&settlements[0]), "KAFKA_MSG_TIMED_OUT");
    // Nobody answers: it is asked before anything is sent again, so the row is certainly not sent.
    let settlements = deliver(&rail, rows("bob", 1..=1)).settlements().await;
    assert!(was_given_back(&settlements[0]), "{settlements:?}");
    proxy.cut();
    proxy.set(Mode::Pass);
    assert_eq!(deliver_all(&rail, || rows("ann", 4..=9)).await, [""; 0]);
    let records = everything(&rail, &topic).await;
    assert_eq!(first_occurrences(&records, "ann"), (1..=9).collect::<Vec<_>>());
}

/// Guards against taking librdkafka's word that a record was purged "in queue" for a proof that it
/// was never sent: it waits there to be sent again.
#[tokio::test]
async fn a_row_that_the_broker_has_is_in_doubt_although_it_is_purged_from_the_queue() {
    let topic = Topic::new().await;
    let proxy = Proxy::to_kafka();
    let rail = rail(proxy.address(), topic.name(), TIMEOUT);
    deliver(&rail, rows("ann", 1..=1)).references().await;
    proxy.set(Mode::LoseAnswers);
    let sent = deliver(&rail, rows("ann", 2..=2));
    assert_eq!(sequence(&topic.consume(2).await, "ann"), [1, 2], "the broker has it");
    proxy.set(Mode::TurnAway);
    proxy.cut();
    in_doubt(&sent.settlements().await[0]);
}

#[tokio::test]
async fn where_nobody_serves_the_port_rows_are_given_back() {
    let proxy = Proxy::to_kafka();
    proxy.set(Mode::TurnAway);
    let rail = rail(proxy.address(), "t", TIMEOUT);
    for _ in 0..2 {
        let settlements = deliver(&rail, rows("ann", 1..=3)).settlements().await;
        assert!(was_given_back(&settlements[0]), "{settlements:?}");
    }
}

#[tokio::test]
async fn wrong_credentials_make_the_rail_unavailable_and_no_row_fail() {
    for properties in [
        "\"security.protocol\" = \"SASL_PLAINTEXT\"\n\"sasl.mechanism\" = \"PLAIN\"\n\"sasl.username\" = \"ann\"\n\"sasl.password\" = \"wrong\"",
        "\"security.protocol\" = \"SSL\"",
    ] {
        let rail = rail(&brokers(), "t", &format!("{TIMEOUT}\n[properties]\n{properties}"));
        let settlements = deliver(&rail, rows("ann", 1..=3)).settlements().await;
        assert!(matches!(settlements[0], Settlement::Release { .. }), "{settlements:?}");
    }
}

/// A rail that works, and then has two rows under way that nothing is heard of.
async fn held_up(topic: &Topic, proxy: &Proxy) -> (KafkaRail, Sent) {
    let rail = rail(proxy.address(), topic.name(), "");
    deliver(&rail, rows("ann", 1..=1)).references().await;
    proxy.set(Mode::Hold);
    let under_way = deliver(&rail, rows("ann", 2..=3));
    (rail, under_way)
}

#[tokio::test]
async fn abandoning_reports_every_row() {
    let (topic, proxy) = (Topic::new().await, Proxy::to_kafka());
    let (rail, under_way) = held_up(&topic, &proxy).await;
    rail.abandon().await;
    assert_eq!(in_doubt(&under_way.settlements().await[0]), "KAFKA_ABANDONED");
    let late = deliver(&rail, rows("bob", 1..=1)).settlements().await;
    assert!(was_given_back(&late[0]));
}

#[tokio::test]
async fn a_rail_that_is_dropped_reports_what_it_had() {
    let (topic, proxy) = (Topic::new().await, Proxy::to_kafka());
    let (rail, under_way) = held_up(&topic, &proxy).await;
    drop(rail);
    in_doubt(&under_way.settlements().await[0]);
}

#[tokio::test]
async fn connections_that_break_again_and_again_lose_and_reorder_nothing() {
    let topic = Topic::new().await;
    let proxy = Proxy::to_kafka();
    let rail = rail(proxy.address(), topic.name(), TIMEOUT);
    let participants = ["ann", "bob", "cid", "dan"];
    let cutting = async {
        for _ in 0..40 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            proxy.cut();
        }
    };
    let delivering = async {
        for start in (1..=400).step_by(100) {
            let lanes =
                participants.map(|name| deliver_all(&rail, move || rows(name, start..=start + 99)));
            let [a, b, c, d] = lanes;
            tokio::join!(a, b, c, d);
        }
    };
    tokio::join!(cutting, delivering);
    let records = everything(&rail, &topic).await;
    for participant in participants {
        let numbers = first_occurrences(&records, participant);
        assert_eq!(numbers, (1..=400).collect::<Vec<_>>(), "{participant}");
    }
}
