//! Rows that are refused, and where they go.

use crate::process::Setup;
use crate::rows::{all_done, count, enqueue, header, lanes, wait_for};
use crate::support::{Database, Topic};

/// `trestle policies --apply`
pub(crate) async fn put_policies_in_force(database: &Database, setup: &Setup) {
    let operator = Setup::new(database)
        .await
        .and(&setup.toml.replace("[admin]\nlisten = \"127.0.0.1:0\"\n", ""));
    let url = database.url_as("symphony_operator").await;
    let mut applied = operator
        .env("DATABASE_URL", &url)
        .start(&["policies", "--apply", "--reason", "test", "--actor", "test"]);
    assert!(applied.ended().await.success(), "{}", applied.log());
}

#[tokio::test]
async fn an_invalid_payload_goes_to_the_dlq_topic_and_the_lane_goes_on() {
    let (database, topic, dlq) = (Database::new().await, Topic::new().await, Topic::new().await);
    let setup = Setup::kafka(&database, &topic)
        .await
        .and(&format!("[dlq]\nrail = \"kafka\"\ntopic = \"{}\"\n", dlq.name()));
    let mut setup = setup;
    setup.toml = setup.toml.replace("schema = \"any\"\n", "");
    put_policies_in_force(&database, &setup).await;
    let client = database.connect().await;
    for (key, payload) in [
        ("a", r#"{"amount": "10.00", "currency": "EUR"}"#),
        ("b", r#"{"amount": "0.00", "currency": "EUR"}"#),
        ("c", r#"{"amount": "10.00", "currency": "EUR"}"#),
    ] {
        let call = "SELECT outbox.enqueue_payment_outbox('i', 'p', $1, 'kafka', $2::text::jsonb, '{\"mine\": \"kept\"}')";
        client.execute(call, &[&key, &payload]).await.unwrap();
    }
    let _bridge = setup.run();
    all_done(&database).await;
    let delivered: Vec<String> =
        topic.consume_all().await.iter().map(|record| header(record, "idempotency_key")).collect();
    assert_eq!(delivered, ["a", "c"]);
    let letter = dlq.consume(1).await.remove(0);
    assert_eq!(letter.key.as_deref(), Some(b"p".as_slice()));
    assert_eq!(letter.value, br#"{"amount": "0.00", "currency": "EUR"}"#);
    for (name, value) in [
        ("mine", "kept"),
        ("dlq_error_code", "PAYLOAD_INVALID"),
        ("dlq_rail_type", "kafka"),
        ("dlq_attempts", "1"),
    ] {
        assert_eq!(header(&letter, name), value);
    }
    assert!(header(&letter, "dlq_reason").contains("/amount"), "{}", header(&letter, "dlq_reason"));
    assert_eq!(count(&database, "FAILED").await, 1);
}

/// The topic's limit is lowered behind our back, so that the broker itself refuses the batch in which the fifth row of
/// p2 is. Then it fails, and nothing behind it comes before what was ahead of it.
#[tokio::test]
async fn a_record_that_the_broker_refuses_in_the_middle_of_a_lane_fails_alone_and_is_not_overtaken()
{
    const ROWS: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object( \
        'instruction_id', 'i' || g, 'participant_id', 'p' || g % 4, 'idempotency_key', 'k', 'rail_type', 'kafka', \
        'payload', jsonb_build_object('x', repeat('x', CASE g WHEN 18 THEN 4000 ELSE 1 END))) ORDER BY g) \
        FROM generate_series(1, 40) AS g))";
    let (database, topic) = (Database::new().await, Topic::new().await);
    let client = database.connect().await;
    // Small, so that there is a batch behind the one that is refused.
    let small = "[rails.kafka.properties]\n\"batch.num.messages\" = \"4\"\n";
    let _bridge = Setup::kafka(&database, &topic).await.and(small).run();
    enqueue(&client, "kafka", 4, 4).await;
    all_done(&database).await;
    topic.limit(3_000).await;
    client.batch_execute(ROWS).await.unwrap();
    wait_for(
        &database,
        "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE rail_type = 'kafka')",
    )
    .await;
    wait_for(&database, "SELECT count(*) > 0 FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE' AND error_code = 'KAFKA_MSG_SIZE_TOO_LARGE'").await;
    wait_for(&database, "SELECT count(*) = 1 AND bool_and(instruction_id = 'i18') FROM outbox.payment_outbox_attempts WHERE state = 'FAILED'").await;
    for (lane, mut numbers) in lanes(&topic.consume_all().await) {
        let mut seen = std::collections::HashSet::new();
        numbers.retain(|number| seen.insert(*number));
        let all = (1..=11).filter(|number| lane != "p2" || *number != 6);
        assert_eq!(numbers, all.collect::<Vec<_>>(), "{lane}");
    }
}

#[tokio::test]
async fn a_bridge_with_other_policies_is_refused_with_both_values() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let setup = Setup::kafka(&database, &topic).await.and("on_failed = \"halt\"\n");
    let mut bridge = setup.run();
    assert_eq!(bridge.ended().await.code(), Some(1));
    assert!(
        bridge.log().contains(
            "rails.kafka.on_failed is 'halt' in this configuration, but 'skip' is in force"
        ),
        "{}",
        bridge.log()
    );
}

#[tokio::test]
async fn a_running_bridge_stops_when_other_policies_come_in_force() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let setup = Setup::kafka(&database, &topic).await;
    let mut bridge = setup.run();
    bridge.logged("ready").await;
    enqueue(&database.connect().await, "kafka", 2, 4).await;
    wait_for(&database, "SELECT count(*) = 4 FROM outbox.payment_outbox_attempts").await;
    let other = Setup::kafka(&database, &topic).await.and("on_failed = \"halt\"\n");
    put_policies_in_force(&database, &other).await;
    assert_eq!(bridge.ended().await.code(), Some(1), "{}", bridge.log());
}
