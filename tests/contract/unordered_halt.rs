//! A row in a lane of its own, from when its rail was without order, halts nothing when it fails after its rail was
//! given order.

use super::lane_acts::{PARTICIPANT, RAIL, claim_rail, claimable, fail_next, replay, set_policies};
use super::support::Database;
use super::{calls, steps};

/// Row 1 waits in a lane of its own and row 2 in its participant's, delayed. Row 1 fails, and is replayed: its new
/// number, and what is claimed when everything is due.
async fn replayed(database: &Database) -> (i64, Vec<i64>) {
    database.control_clock().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"ach": {"ordering": "none"}}"#).await.unwrap();
    calls::enqueue(&client, PARTICIPANT, RAIL).await;
    let first = claim_rail(&client, RAIL, 1).await.remove(0);
    calls::complete(&client, "worker", &first, "RETRYABLE").await.unwrap();

    set_policies(&client, r#"{"ach": {"on_failed": "halt"}}"#).await.unwrap();
    let delayed = steps::Request::new(PARTICIPANT, RAIL);
    let later = "SELECT (outbox.clock() + interval '1 minute')::text";
    let later = client.query_one(later, &[]).await.unwrap().get(0);
    delayed.with(|r| r.not_before = Some(later)).call(&client).await.unwrap();
    let failed = fail_next(&client, 10).await.outbox_id;
    assert_eq!(failed, first.outbox_id);
    let (_, number) = replay(&client, failed).await.unwrap();
    database.advance(std::time::Duration::from_secs(120)).await;
    (number, claimable(&client).await)
}

#[tokio::test]
async fn a_row_of_a_lane_of_its_own_halts_nothing_and_its_replay_is_claimed() {
    assert_eq!(replayed(&Database::new().await).await, (3, vec![2, 3]));
}

#[tokio::test]
async fn if_it_halted_its_participant_s_lane_its_replay_would_never_be_claimed() {
    let database = Database::new().await;
    database.take_out("halt_lanes", "AND NOT EXISTS", "AND true OR NOT EXISTS").await;
    assert_eq!(replayed(&database).await, (1, vec![2]));
}
