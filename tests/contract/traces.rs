//! What an operator is shown: lanes, previews of replays, and the life of rows.

use uuid::Uuid;

use crate::calls::{claim, code, complete, enqueue, enqueue_key};
use crate::lane_acts::{claim_rail, pause, replay, set_policies};
use crate::support::Database;

#[tokio::test]
async fn a_trace_of_nothing_in_particular_is_refused() {
    let database = Database::new().await;
    let client = database.connect().await;
    for (arguments, sqlstate) in [
        ("'rail', 'ach', 10", "P7122"),
        ("NULL, 'ach', 10", "P7122"),
        ("'outbox', 'x', 0", "P7110"),
        ("'outbox', 'x', NULL", "P7110"),
    ] {
        let call = format!("SELECT FROM outbox.trace_outbox({arguments})");
        let refused = client.batch_execute(&call).await.unwrap_err();
        assert_eq!(code(&refused), sqlstate, "{arguments}");
    }
}

#[tokio::test]
async fn a_row_in_a_lane_of_its_own_is_paused_with_its_participants_lane() {
    const STATES: &str = "SELECT solo_sequence_id, state, paused_reason \
        FROM outbox.lane_status('p', 'ach', true, 10) ORDER BY 1";
    let database = Database::new().await;
    let client = database.connect().await;
    set_policies(&client, r#"{"ach": {"ordering": "none"}}"#).await.unwrap();
    enqueue(&client, "p", "ach").await;
    let row = claim_rail(&client, "ach", 1).await.remove(0);
    complete(&client, "worker", &row, "RETRYABLE").await.unwrap();
    pause(&client, "p", "ach").await.unwrap();
    let rows = client.query(STATES, &[]).await.unwrap();
    let states: Vec<(i64, String)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(states, [(0, "paused".to_owned()), (1, "paused".to_owned())]);
    assert_eq!(rows[0].get::<_, String>(2), rows[1].get::<_, String>(2));
}

#[tokio::test]
async fn a_replay_of_a_replay_is_as_old_as_the_first_attempt() {
    const PREVIEW: &str = "SELECT p.first_tried_at = (SELECT min(claimed_at) \
          FROM outbox.payment_outbox_attempts), p.later_of_instruction, p.later_delivered \
        FROM outbox.preview_replay(ARRAY[$1::uuid]) AS p";
    let database = Database::new().await;
    let client = database.connect().await;
    let first = enqueue_key(&client, "i", "p", "k", "ach").await.unwrap().outbox_id;
    let row = claim_rail(&client, "ach", 1).await.remove(0);
    complete(&client, "worker", &row, "FAILED").await.unwrap();
    let (second, _) = replay(&client, first).await.unwrap();
    let row = claim_rail(&client, "ach", 1).await.remove(0);
    complete(&client, "worker", &row, "FAILED").await.unwrap();
    let preview = |id: Uuid| {
        let client = &client;
        async move {
            let row = client.query_one(PREVIEW, &[&id]).await.unwrap();
            (row.get::<_, bool>(0), row.get::<_, i64>(1), row.get::<_, bool>(2))
        }
    };
    assert_eq!(preview(second).await, (true, 0, false), "its own replay has not overtaken it");
    enqueue_key(&client, "i", "p", "k2", "ach").await.unwrap();
    let row = claim_rail(&client, "ach", 1).await.remove(0);
    complete(&client, "worker", &row, "DISPATCHED").await.unwrap();
    assert_eq!(preview(second).await, (true, 1, true));
}

#[tokio::test]
async fn any_row_of_a_payment_leads_to_all_of_it() {
    const ROWS: &str =
        "SELECT count(DISTINCT outbox_id) FROM outbox.trace_outbox('outbox', $1, 100)";
    let database = Database::new().await;
    let client = database.connect().await;
    let first = enqueue(&client, "p", "ach").await.outbox_id;
    enqueue(&client, "p", "ach").await;
    let row = claim_rail(&client, "ach", 1).await.remove(0);
    complete(&client, "worker", &row, "FAILED").await.unwrap();
    let (second, _) = replay(&client, first).await.unwrap();
    let letter = claim(&client, "worker", 10).await;
    let letter = letter.iter().find(|row| row.rail_type == "dlq").unwrap().outbox_id;
    for id in [first, second, letter] {
        let rows = client.query_one(ROWS, &[&id.to_string()]).await.unwrap();
        assert_eq!(rows.get::<_, i64>(0), 3, "{id}");
    }
}
