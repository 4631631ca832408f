//! A lane that somebody else has locked holds up nobody but itself.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::calls::{Claimed, Told, claim, complete_batch, enqueue};
use super::steps::{refusal, run};
use super::support::Database;

/// Two rows of two participants, leased, and an operator who has not committed yet.
async fn one_lane_locked(database: &Database) -> (Client, Client, Vec<Claimed>) {
    let (client, operator) = (database.connect().await, database.connect().await);
    enqueue(&client, "alice", "bank").await;
    enqueue(&client, "bob", "bank").await;
    let rows = claim(&client, "w", 10).await;
    run(&operator, "BEGIN; SELECT outbox.pause_outbox_lane('alice', 'bank', 'ann', 'why')").await;
    run(&client, "SET statement_timeout = '2s'").await;
    (client, operator, rows)
}

async fn done(client: &Client, rows: &[Claimed]) -> Result<Vec<Told>, Error> {
    let outcomes: Vec<(&Claimed, &str)> = rows.iter().map(|row| (row, "DISPATCHED")).collect();
    complete_batch(client, "w", &outcomes).await
}

fn ids(rows: &[Claimed]) -> (Vec<Uuid>, Vec<Uuid>) {
    rows.iter().map(|row| (row.outbox_id, row.lease_token)).unzip()
}

#[tokio::test]
async fn an_outcome_waits_for_its_own_lane_alone() {
    let database = Database::new().await;
    let (client, operator, rows) = one_lane_locked(&database).await;
    let told = done(&client, &rows).await.unwrap();
    let refusals: Vec<Option<String>> = told.into_iter().map(|told| told.refusal).collect();
    assert_eq!(refusals, [Some("P7018".to_owned()), None]);
    run(&operator, "COMMIT").await;
    let told = done(&client, &rows[..1]).await.unwrap();
    assert_eq!(told[0].refusal, None);
}

#[tokio::test]
async fn a_busy_lane_is_neither_given_back_nor_renewed_nor_lost() {
    let database = Database::new().await;
    let (client, _operator, rows) = one_lane_locked(&database).await;
    let (ids, tokens) = ids(&rows);
    let renew = "SELECT outbox_id, lease_expires_at IS NULL FROM outbox.renew_outbox_leases('w', $1, $2, 60) ORDER BY 2";
    let release =
        "SELECT outbox_id, busy FROM outbox.release_outbox_leases('w', $1, $2) ORDER BY 2";
    for call in [renew, release] {
        let told = client.query(call, &[&ids, &tokens]).await.unwrap();
        let told: Vec<(Uuid, bool)> = told.iter().map(|row| (row.get(0), row.get(1))).collect();
        assert_eq!(told, [(ids[1], false), (ids[0], true)]);
    }
}

#[tokio::test]
async fn without_skipping_it_a_busy_lane_would_hold_up_the_others() {
    let database = Database::new().await;
    database.take_out("lock_leased_lanes", "SKIP LOCKED", "").await;
    let (client, _operator, rows) = one_lane_locked(&database).await;
    let told = done(&client, &rows).await;
    assert_eq!(refusal(told).as_deref(), Some("57014"));
}
