//! Who is claimed first, what waits, and what a filter leaves alone.

use std::time::Duration;

use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::{Claimed, claim, complete, enqueue};
use super::steps::{Request, never_wait, refusal, run, try_claim};
use super::support::Database;

/// Whether a row may go is decided for it and everything before it.
const PREFIX: &str = "OVER (PARTITION BY t.turn_id ORDER BY";
const EACH_ROW: &str = "OVER (PARTITION BY t.turn_id, r.outbox_id ORDER BY";

fn places(rows: &[Claimed]) -> Vec<(&str, i64)> {
    rows.iter().map(|row| (row.participant_id.as_str(), row.sequence_id)).collect()
}

/// Lanes c, a and b became due in this order, with two rows each.
async fn three_lanes(client: &Client) {
    for participant in ["c", "a", "b", "b", "a", "c"] {
        enqueue(client, participant, "bank").await;
    }
}

#[tokio::test]
async fn lanes_come_longest_due_first_and_rows_in_sequence() {
    let database = Database::new().await;
    let client = database.connect().await;
    three_lanes(&client).await;
    let rows = claim(&client, "w", 100).await;
    assert_eq!(places(&rows), [("c", 1), ("c", 2), ("a", 1), ("a", 2), ("b", 1), ("b", 2)]);
}

/// The lanes that three small claims get, in turn.
async fn three_small_claims(database: &Database) -> Vec<String> {
    let client = database.connect().await;
    three_lanes(&client).await;
    let mut lanes = Vec::new();
    for worker in ["w1", "w2", "w3"] {
        lanes.extend(claim(&client, worker, 1).await.into_iter().map(|row| row.participant_id));
    }
    lanes
}

#[tokio::test]
async fn a_small_claim_takes_whoever_waits_longest() {
    assert_eq!(three_small_claims(&Database::new().await).await, ["c", "a", "b"]);
}

#[tokio::test]
async fn without_the_order_of_turns_the_newest_lane_goes_first() {
    let database = Database::new().await;
    let order = "ORDER BY t.due_at, t.turn_id LIMIT p_lanes";
    database
        .take_out("pick_lanes", order, "ORDER BY t.due_at DESC, t.turn_id DESC LIMIT p_lanes")
        .await;
    assert_eq!(three_small_claims(&database).await[0], "b");
}

/// A claims and keeps its transaction open, B claims, A commits, B claims again, A claims again.
async fn interleaved(database: &Database) -> Result<Vec<Vec<String>>, String> {
    let (a, b) = (database.connect().await, database.connect().await);
    for participant in ["x", "x", "x", "y", "y", "y"] {
        enqueue(&a, participant, "bank").await;
    }
    never_wait(&b).await;
    let mut told = Vec::new();
    run(&a, "BEGIN").await;
    told.push(try_claim(&a, "a", 2).await);
    run(&b, "BEGIN").await;
    told.push(try_claim(&b, "b", 2).await);
    run(&a, "COMMIT").await;
    told.push(try_claim(&b, "b", 2).await);
    told.push(try_claim(&a, "a", 2).await);
    run(&b, "COMMIT").await;
    told.push(try_claim(&a, "a", 2).await);
    let mut lanes = Vec::new();
    for claimed in told {
        let rows = claimed.map_err(|error| super::calls::code(&error).to_owned())?;
        lanes.push(rows.into_iter().map(|row| row.participant_id).collect());
    }
    Ok(lanes)
}

#[tokio::test]
async fn two_workers_never_share_a_lane() {
    let lanes = interleaved(&Database::new().await).await.unwrap();
    assert_eq!(lanes, [vec!["x", "x"], vec!["y", "y"], vec![], vec![], vec![]]);
}

#[tokio::test]
async fn without_skipping_locked_lanes_a_claim_waits_for_another() {
    let database = Database::new().await;
    database.take_out("pick_lanes", "FOR NO KEY UPDATE SKIP LOCKED", "").await;
    assert_eq!(interleaved(&database).await, Err("55P03".to_owned()));
}

/// What ends the waiting turn of a lane that is claimed.
const TAKEN: &str = "WHERE t.turn_id = ANY (ARRAY(SELECT k.turn_id FROM taken AS k))";

#[tokio::test]
async fn without_ending_the_waiting_turn_two_workers_share_a_lane() {
    let database = Database::new().await;
    database.take_out("lease_lanes", TAKEN, "WHERE false").await;
    database.take_out("lease_lanes", PREFIX, EACH_ROW).await;
    let client = database.connect().await;
    for _ in 0..3 {
        enqueue(&client, "x", "bank").await;
    }
    assert_eq!(claim(&client, "a", 2).await.len(), 2);
    assert_eq!(claim(&client, "b", 10).await.len(), 1);
}

/// The first row is due, the second is delayed, the third is due.
async fn around_a_delayed_row(database: &Database) -> Vec<i64> {
    let client = database.connect().await;
    let later = Some("2030-01-01T00:00:00Z".to_owned());
    for not_before in [None, later, None] {
        Request::new("p", "bank").with(|r| r.not_before = not_before).call(&client).await.unwrap();
    }
    claim(&client, "w", 10).await.iter().map(|row| row.sequence_id).collect()
}

#[tokio::test]
async fn a_delayed_row_holds_up_what_is_behind_it() {
    assert_eq!(around_a_delayed_row(&Database::new().await).await, [1]);
}

#[tokio::test]
async fn without_the_prefix_rule_a_delayed_row_is_overtaken() {
    let database = Database::new().await;
    database.take_out("lease_lanes", PREFIX, EACH_ROW).await;
    assert_eq!(around_a_delayed_row(&database).await, [1, 3]);
}

/// What is claimed right after the head was retried with a delay, and once the delay is over.
async fn behind_a_retried_head(database: &Database) -> [Vec<i64>; 2] {
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    enqueue(&client, "p", "bank").await;
    let head = claim(&client, "w", 10).await.remove(0);
    const RETRY: &str = "SELECT FROM outbox.complete_outbox_attempt($1, $2, 'w', 'RETRYABLE', p_retry_delay_seconds => 60)";
    client.execute(RETRY, &[&head.outbox_id, &head.lease_token]).await.unwrap();
    let numbers = |rows: Vec<Claimed>| rows.iter().map(|row| row.sequence_id).collect();
    let at_once = numbers(claim(&client, "w", 10).await);
    database.advance(Duration::from_secs(61)).await;
    [at_once, numbers(claim(&client, "w", 10).await)]
}

#[tokio::test]
async fn a_retried_head_holds_up_what_is_behind_it() {
    assert_eq!(behind_a_retried_head(&Database::new().await).await, [vec![], vec![1, 2]]);
}

#[tokio::test]
async fn a_lane_that_is_due_before_its_head_is_overtaken() {
    let database = Database::new().await;
    database.take_out("settle_lanes", "GREATEST(o.next_attempt_at, v_now)", "v_now").await;
    database.take_out("lease_lanes", PREFIX, EACH_ROW).await;
    assert_eq!(behind_a_retried_head(&database).await[0], [2]);
}

/// One lane of a thousand rows that is due first and fifty lanes of one row: how many of the fifty
/// are in one claim, and how many rows of the long lane.
async fn beside_a_long_lane(database: &Database) -> (usize, usize) {
    let client = database.connect().await;
    let many = "SELECT outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object(\
        'instruction_id', 'i' || i, 'participant_id', CASE WHEN i <= 1000 THEN 'long' ELSE 'p' || i END, \
        'idempotency_key', 'k', 'rail_type', 'bank', 'payload', '{}'::jsonb)) FROM generate_series(1, 1050) AS i))";
    client.query(many, &[]).await.unwrap();
    let rows = claim(&client, "w", 100).await;
    let long = rows.iter().filter(|row| row.participant_id == "long").count();
    (rows.len() - long, long)
}

#[tokio::test]
async fn a_long_lane_gets_its_turn_like_everyone_else() {
    let (short, long) = beside_a_long_lane(&Database::new().await).await;
    assert_eq!(short, 50);
    assert!(long > 0);
}

#[tokio::test]
async fn a_claim_that_begins_with_one_lane_is_filled_by_it() {
    let database = Database::new().await;
    let several = "v_lanes := GREATEST((p_batch_size - cardinality(v_ids)) / 10, 1);";
    database.take_out("claim_outbox_batch", several, "v_lanes := 1;").await;
    assert_eq!(beside_a_long_lane(&database).await, (0, 100));
}

/// What a worker gets that asks for the rails a and b, and one that asks for a tenant.
async fn filtered(database: &Database) -> [Vec<String>; 2] {
    let client = database.connect().await;
    let tenant = Uuid::new_v4();
    for rail in ["a", "b", "nobodys"] {
        enqueue(&client, rail, rail).await;
    }
    Request::new("t", "a").with(|r| r.tenant = Some(tenant)).call(&client).await.unwrap();
    let of_tenant = "SELECT participant_id FROM outbox.claim_outbox_batch(10, 'w', 60, NULL, $1)";
    let of_rails =
        "SELECT participant_id FROM outbox.claim_outbox_batch(10, 'w', 60, ARRAY['a', 'b'])";
    let by_tenant = client.query(of_tenant, &[&tenant]).await.unwrap();
    let by_rails = client.query(of_rails, &[]).await.unwrap();
    [by_tenant, by_rails].map(|rows| rows.iter().map(|row| row.get(0)).collect())
}

#[tokio::test]
async fn filters_leave_other_rails_and_tenants_alone() {
    let database = Database::new().await;
    assert_eq!(filtered(&database).await, [vec!["t"], vec!["a", "b"]]);
    let client = database.connect().await;
    assert_eq!(places(&claim(&client, "w", 10).await), [("nobodys", 1)], "it stayed where it was");
}

#[tokio::test]
async fn without_the_filters_a_worker_gets_everything() {
    let database = Database::new().await;
    let tenant = "AND (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id)";
    database.take_out("pick_lanes", tenant, "").await;
    assert_eq!(filtered(&database).await[0].len(), 4);

    let database = Database::new().await;
    let rails = "COALESCE(p_rail_types, outbox.due_rails())";
    database.take_out("claim_outbox_batch", rails, "outbox.due_rails()").await;
    assert_eq!(filtered(&database).await[1], ["a", "b", "nobodys"]);
}

#[tokio::test]
async fn an_outcome_may_come_from_any_connection_of_the_worker() {
    let database = Database::new().await;
    let (a, b) = (database.connect().await, database.connect().await);
    enqueue(&a, "p", "bank").await;
    let row = claim(&a, "w", 1).await.remove(0);
    assert_eq!(refusal(complete(&b, "w", &row, "DISPATCHED").await), None);
}
