//! The Kafka rail and answers that a real broker cannot be made to give: librdkafka's own mock
//! cluster gives them.

use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr as Answer};
use trestle::delivery::Row;
use trestle::rails::kafka::KafkaRail;

use super::kafka::rail;
use super::kafka_lanes::{deliver, deliver_all, in_doubt, refused, row};

fn cluster() -> MockCluster<'static, DefaultProducerContext> {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("t", 1, 1).expect("a topic");
    cluster
}

fn rows() -> Vec<Row> {
    (1..=5).map(|number| row("ann", number, "{}")).collect()
}

/// Rows under way get this answer; those behind it go on when the rail is well again.
async fn answered(answer: Answer) -> (KafkaRail, String) {
    let cluster = Box::leak(Box::new(cluster()));
    let rail = rail(&cluster.bootstrap_servers(), "t", "delivery_timeout_seconds = 3");
    deliver(&rail, rows()).references().await;
    cluster.request_errors(RDKafkaApiKey::Produce, &[answer]);
    let settlements = deliver(&rail, rows()).settlements().await;
    let code = in_doubt(&settlements[0]).to_owned();
    assert_eq!(settlements.len(), 1, "nothing behind it is delivered");
    assert_eq!(deliver_all(&rail, rows).await, [""; 0]);
    (rail, code)
}

#[tokio::test]
async fn a_producer_that_lost_step_with_the_broker_is_replaced() {
    let (_rail, code) = answered(Answer::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER).await;
    assert_eq!(code, "KAFKA_OUT_OF_ORDER_SEQUENCE_NUMBER");
}

#[tokio::test]
async fn a_right_that_is_missing_makes_no_row_fail() {
    let (_rail, code) = answered(Answer::RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED).await;
    assert_eq!(code, "KAFKA_TOPIC_AUTHORIZATION_FAILED");
}

#[tokio::test]
async fn a_refused_batch_is_sent_again_record_by_record_and_only_then_a_row_fails() {
    let cluster = cluster();
    let rail = rail(&cluster.bootstrap_servers(), "t", "delivery_timeout_seconds = 3");
    deliver(&rail, rows()).references().await;
    let invalid = Answer::RD_KAFKA_RESP_ERR_INVALID_RECORD;
    cluster.request_errors(RDKafkaApiKey::Produce, &[invalid]);
    let settlements = deliver(&rail, rows()).settlements().await;
    assert_eq!(in_doubt(&settlements[0]), "KAFKA_INVALID_RECORD");
    assert_eq!(deliver_all(&rail, || vec![row("ann", 1, "{}")]).await, [""; 0]);
    cluster.request_errors(RDKafkaApiKey::Produce, &[invalid]);
    let settlements = deliver(&rail, vec![row("bob", 1, "{}")]).settlements().await;
    assert_eq!(refused(&settlements[0]), "KAFKA_INVALID_RECORD");
    assert_eq!(deliver_all(&rail, rows).await, [""; 0]);
}
