//! A whole batch of outcomes in one round trip.

use std::collections::HashSet;
use std::time::Duration;

use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::{Claimed, Told, claim_for, complete_batch};
use super::steps::{count, run};
use super::support::Database;

/// Five hundred rows; the leases of fifty, all over the batch, run out before the outcomes come.
async fn complete_with_lost_leases(
    database: &Database,
    client: &Client,
) -> (HashSet<Uuid>, Vec<Told>) {
    database.control_clock().await;
    let many = "SELECT outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object(\
        'instruction_id', 'i' || i, 'participant_id', 'p' || i, 'idempotency_key', 'k', 'rail_type', 'bank', \
        'payload', '{}'::jsonb)) FROM generate_series(1, 500) AS i))";
    run(client, many).await;
    let lost = claim_for(client, "w", 50, 5).await;
    let kept = claim_for(client, "w", 450, 60).await;
    assert_eq!((lost.len(), kept.len()), (50, 450));
    database.advance(Duration::from_secs(6)).await;
    let mixed = kept.chunks(9).zip(&lost).flat_map(|(kept, lost)| kept.iter().chain([lost]));
    let outcomes: Vec<(&Claimed, &str)> = mixed.map(|row| (row, "DISPATCHED")).collect();
    let told = complete_batch(client, "w", &outcomes).await.unwrap();
    (lost.iter().map(|row| row.outbox_id).collect(), told)
}

/// The rows that were refused because their lease was lost.
fn refused(told: &[Told]) -> HashSet<Uuid> {
    let lost = told.iter().filter(|told| told.refusal.as_deref() == Some("P7002"));
    lost.map(|told| told.outbox_id).collect()
}

#[tokio::test]
async fn lost_leases_are_named_and_the_rest_is_completed() {
    let database = Database::new().await;
    let client = database.connect().await;
    let (lost, told) = complete_with_lost_leases(&database, &client).await;
    assert_eq!(told.len(), 500);
    assert_eq!(refused(&told), lost);
    assert_eq!(told.iter().filter(|told| told.state.as_deref() == Some("DISPATCHED")).count(), 450);
    let recorded = "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'";
    assert_eq!(count(&client, recorded).await, 450);
    assert_eq!(count(&client, "SELECT count(*) FROM outbox.payment_outbox_pending").await, 50);
}

#[tokio::test]
async fn without_the_lease_check_lost_rows_are_completed_too() {
    let database = Database::new().await;
    database.take_out("judge_outcomes", "AND r.lease_expires_at > p_now", "").await;
    let client = database.connect().await;
    let (_, told) = complete_with_lost_leases(&database, &client).await;
    assert_eq!(refused(&told).len(), 0);
}

#[tokio::test]
async fn a_batch_is_one_statement() {
    let database = Database::new().await;
    let client = database.connect().await;
    let loaded = "SELECT count(*) FROM pg_settings WHERE name = 'shared_preload_libraries' \
                  AND setting LIKE '%pg_stat_statements%'";
    if count(&client, loaded).await == 0 {
        println!(
            "skipped: this server does not count statements (pg_stat_statements is not loaded)"
        );
        return;
    }
    run(&client, "CREATE EXTENSION pg_stat_statements").await;
    complete_with_lost_leases(&database, &client).await;
    let calls = "SELECT COALESCE(sum(s.calls), 0)::int8 FROM pg_stat_statements AS s \
                 JOIN pg_database AS d ON d.oid = s.dbid AND d.datname = current_database() \
                 WHERE s.toplevel AND s.query LIKE '%complete_outbox%' AND s.query NOT LIKE '%pg_stat_statements%'";
    assert_eq!(count(&client, calls).await, 1);
}
