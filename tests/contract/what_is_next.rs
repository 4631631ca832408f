//! What the database says of the next look: whether a claim would find more, and when a shard may be free.

use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::{claim, enqueue};
use super::shards;
use super::steps::{count, run};
use super::support::Database;

/// Completes these rows as delivered, and tells what is said of more.
async fn more(client: &Client, worker: &str, rows: &[(Uuid, Uuid)]) -> bool {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = rows.iter().copied().unzip();
    let call = "SELECT bool_and(more) FROM outbox.complete_outbox_batch($1, $2::uuid[], $3::uuid[], \
        array_fill('DISPATCHED'::outbox.outbox_attempt_state, ARRAY[cardinality($2::uuid[])])) WHERE refusal IS NULL";
    client.query_one(call, &[&worker, &ids, &tokens]).await.unwrap().get(0)
}

async fn claimed(client: &Client) -> Vec<(Uuid, Uuid)> {
    let rows = claim(client, "w", 10).await;
    rows.iter().map(|row| (row.outbox_id, row.lease_token)).collect()
}

#[tokio::test]
async fn a_lane_that_is_empty_or_waits_has_no_more_and_one_with_a_row_that_came_meanwhile_has() {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "kafka").await;
    let first = claimed(&client).await;
    assert!(!more(&client, "w", &first).await, "nothing is left");

    enqueue(&client, "alice", "kafka").await;
    let second = claimed(&client).await;
    enqueue(&client, "alice", "kafka").await;
    assert!(more(&client, "w", &second).await, "it came while the lane was leased");

    let third = claimed(&client).await;
    enqueue(&client, "alice", "kafka").await;
    run(&client, "UPDATE outbox.payment_outbox_pending SET next_attempt_at = clock_timestamp() + interval '1 h' WHERE lease_token IS NULL").await;
    assert!(!more(&client, "w", &third).await, "it is not due");
}

#[tokio::test]
async fn a_shard_whose_batch_is_written_has_more_when_another_of_its_lanes_is_due() {
    let database = Database::new().await;
    let client = shards::owned(&database).await;
    let batch = shards::claim(&client, "w1", 0, 1).await;
    // While the batch is under way nothing of its shard can be claimed.
    shards::enqueue(&client, 40).await;
    assert!(more(&client, "w1", &batch).await);
    let rest = shards::claim(&client, "w1", 0, 1).await;
    assert!(!more(&client, "w1", &rest).await, "the other shard is not this one's");
}

/// In how many milliseconds the second worker is to look again, if that is soon.
async fn look_again(client: &Client) -> Option<i32> {
    let call = "SELECT max(look_again_ms) FROM outbox.lease_outbox_shards('w2', 'eos', 60)";
    client.query_one(call, &[]).await.unwrap().get(0)
}

/// The first worker has shard 0 for so long, the second has shard 1.
async fn lease_ends_in(client: &Client, milliseconds: i32) {
    let set = format!(
        "UPDATE outbox.payment_outbox_shards SET owner = 'w2', ready = false, lease_expires_at = clock_timestamp() + interval '60 s' WHERE shard = 1; \
         UPDATE outbox.payment_outbox_shards SET owner = 'w1', lease_expires_at = clock_timestamp() + interval '{milliseconds} ms' WHERE shard = 0"
    );
    run(client, &set).await;
}

#[tokio::test]
async fn who_shares_a_rail_is_told_when_the_lease_of_another_ends() {
    let database = Database::new().await;
    let client = shards::owned(&database).await;
    run(
        &client,
        "SELECT outbox.note_worker('w1', '{eos}'); SELECT outbox.note_worker('w2', '{eos}')",
    )
    .await;
    lease_ends_in(&client, 30_000).await;
    assert_eq!(look_again(&client).await, None, "not soon");
    lease_ends_in(&client, 900).await;
    assert!(look_again(&client).await.is_some_and(|ms| (1..=900).contains(&ms)));
    // Whoever has its share waits a moment for somebody who has less.
    lease_ends_in(&client, -100).await;
    assert!(look_again(&client).await.is_some_and(|ms| (1..=500).contains(&ms)));
    lease_ends_in(&client, -700).await;
    assert_eq!(look_again(&client).await, None);
    let taken = "SELECT count(*) FROM outbox.payment_outbox_shards WHERE owner = 'w2'";
    assert_eq!(count(&client, taken).await, 2);
}

#[tokio::test]
async fn who_has_no_shard_is_told_too() {
    let database = Database::new().await;
    let client = shards::owned(&database).await;
    let soon = "UPDATE outbox.payment_outbox_shards SET lease_expires_at = clock_timestamp() + interval '900 ms'";
    run(&client, soon).await;
    assert!(look_again(&client).await.is_some_and(|ms| (1..=900).contains(&ms)));
    let owned = "SELECT count(shard) FROM outbox.lease_outbox_shards('w2', 'eos', 60)";
    assert_eq!(count(&client, owned).await, 0);
}

#[tokio::test]
async fn a_failure_has_a_dead_letter_which_is_more() {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "kafka").await;
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = claimed(&client).await.into_iter().unzip();
    let fail = "SELECT more FROM outbox.complete_outbox_batch('w', $1, $2, '{FAILED}')";
    let row = client.query_one(fail, &[&ids, &tokens]).await.unwrap();
    assert!(row.get::<_, bool>(0));
}

#[tokio::test]
async fn a_shard_has_more_also_when_the_lane_of_its_batch_is_paused() {
    let database = Database::new().await;
    let client = shards::owned(&database).await;
    let batch = shards::claim(&client, "w1", 0, 1).await;
    let pause = "SELECT outbox.pause_outbox_lane(l.participant_id, 'eos', 'ops', 'why') \
        FROM (SELECT DISTINCT participant_id FROM outbox.payment_outbox_pending WHERE batch IS NOT NULL) AS l";
    run(&client, pause).await;
    let others = "SELECT count((outbox.enqueue_payment_outbox(gen_random_uuid()::text, 'other' || g, 'k', 'eos', '{}')).outbox_id) \
        FROM generate_series(1, 20) AS g";
    run(&client, others).await;
    assert!(more(&client, "w1", &batch).await);
}
