//! A lane that was paused before anybody knew its participant belongs to the tenant of its first row.

use tokio_postgres::Client;
use uuid::Uuid;

use super::lane_acts::{PARTICIPANT, RAIL, pause, resume};
use super::steps::Request;
use super::support::Database;

/// How many rows a bridge of this tenant claims.
async fn claimed_for(client: &Client, tenant: Uuid) -> usize {
    const CALL: &str = "SELECT FROM outbox.claim_outbox_batch(10, 'w', 60, NULL, $1)";
    client.query(CALL, &[&tenant]).await.unwrap().len()
}

/// A tenant's first row, enqueued before or after the lane is resumed: how many its bridge claims.
async fn first_row(database: &Database, resumed_first: bool) -> usize {
    let client = database.connect().await;
    let tenant = Uuid::new_v4();
    let row = Request::new(PARTICIPANT, RAIL).with(|r| r.tenant = Some(tenant));
    pause(&client, PARTICIPANT, RAIL).await.unwrap();
    if resumed_first {
        resume(&client, PARTICIPANT, RAIL).await.unwrap();
        row.call(&client).await.unwrap();
    } else {
        row.call(&client).await.unwrap();
        assert_eq!(claimed_for(&client, tenant).await, 0, "it is paused");
        resume(&client, PARTICIPANT, RAIL).await.unwrap();
    }
    assert_eq!(claimed_for(&client, Uuid::new_v4()).await, 0, "another's");
    claimed_for(&client, tenant).await
}

#[tokio::test]
async fn the_first_row_of_a_participant_is_claimed_for_its_tenant_whenever_its_lane_was_paused() {
    for resumed_first in [false, true] {
        let told = first_row(&Database::new().await, resumed_first).await;
        assert_eq!(told, 1, "resumed first: {resumed_first}");
    }
}

#[tokio::test]
async fn without_a_look_at_the_tenant_it_would_never_be() {
    let look = " AND l.tenant_id IS NOT DISTINCT FROM p_tenant_id";
    for resumed_first in [false, true] {
        let database = Database::new().await;
        database.take_out("enqueue_payment_outbox", look, "").await;
        let told = first_row(&database, resumed_first).await;
        assert_eq!(told, 0, "resumed first: {resumed_first}");
    }
}
