//! Records that the broker refuses, one after the other.

use super::scene::Scene;
use crate::rows::{all_done, lanes, wait_for};

/// Forty rows in four lanes; two of them, in the middle of two lanes, are too large for the topic.
const ROWS: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object( \
    'instruction_id', 'i' || g, 'participant_id', 'p' || g % 4, 'idempotency_key', 'k', 'rail_type', 'kafka', \
    'payload', jsonb_build_object('x', repeat('x', CASE WHEN g IN (18, 19) THEN 4000 ELSE 1 END))) ORDER BY g) FROM generate_series(1, 40) AS g))";

/// What was found out about the first is not forgotten while the second is looked for.
#[tokio::test]
async fn each_of_several_refused_rows_costs_one_transaction() {
    let scene = Scene::with_shards(1, "").await;
    let client = scene.database.connect().await;
    let worker = scene.setup.run();
    crate::rows::enqueue(&client, "kafka", 4, 4).await;
    all_done(&scene.database).await;
    // Behind our back: what is known of a topic is asked for again after ten seconds.
    scene.topic.alter("max.message.bytes", "3000").await;
    client.batch_execute(ROWS).await.unwrap();
    let rail_is_done =
        "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE rail_type = 'kafka')";
    wait_for(&scene.database, rail_is_done).await;
    let failed = "SELECT array_agg(instruction_id ORDER BY instruction_id) = '{i18,i19}' \
        FROM outbox.payment_outbox_attempts WHERE state = 'FAILED'";
    wait_for(&scene.database, failed).await;
    // One shows that records have to go alone, and each of the two rows spoils one.
    let spoilt = worker.log().matches("a transaction did not succeed for certain").count();
    assert!(spoilt <= 3, "{spoilt} transactions\n{}", worker.log());
    let records = scene.topic.consume_committed().await;
    assert_eq!(records.len(), 42);
    for (lane, numbers) in lanes(&records) {
        assert!(numbers.is_sorted_by(|one, next| one < next), "{lane}: {numbers:?}");
    }
}
