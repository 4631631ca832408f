//! Another `ordering` for a rail, while rows are pending.

use axum::http::StatusCode;

use crate::process::Setup;
use crate::refusals::put_policies_in_force;
use crate::rows::{all_done, count, enqueue, wait_for};
use crate::support::Database;
use crate::web::Bank;

async fn setup(bank: &Bank, database: &Database, ordering: &str) -> Setup {
    bank.setup(database).await.and(&format!(
        "timeout_seconds = 5\nordering = \"{ordering}\"\n[relay]\nlease_seconds = 11\n"
    ))
}

/// Waits until so many attempts have come to nothing.
async fn tried(database: &Database, attempts: i64) {
    let tried = format!(
        "SELECT count(*) >= {attempts} FROM outbox.payment_outbox_attempts WHERE state = 'RETRYABLE'"
    );
    wait_for(database, &tried).await;
}

/// Rows of before, some of which wait for their next attempt; then the other policy; then rows of after.
async fn change(from: &str, to: &str, tried_before: i64) -> (Database, Bank) {
    let (database, bank) =
        (Database::new().await, Bank::open(StatusCode::INTERNAL_SERVER_ERROR).await);
    let before = setup(&bank, &database, from).await;
    put_policies_in_force(&database, &before).await;
    let client = database.connect().await;
    let mut bridge = before.run();
    enqueue(&client, "bank", 4, 40).await;
    tried(&database, tried_before).await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    enqueue(&client, "bank", 4, 20).await;

    let after = setup(&bank, &database, to).await;
    put_policies_in_force(&database, &after).await;
    enqueue(&client, "bank", 4, 40).await;
    let _bridge = after.run();
    tried(&database, tried_before + 20).await;
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 100);
    assert_eq!(count(&database, "FAILED").await, 0);
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 0, "a lease was forgotten");
    (database, bank)
}

#[tokio::test]
async fn a_rail_that_becomes_strict_loses_nothing_and_keeps_the_order_of_what_comes_afterwards() {
    let (_database, bank) = change("none", "strict", 40).await;
    for (participant, numbers) in bank.lanes() {
        let after: Vec<i64> = numbers.iter().copied().filter(|number| *number > 15).collect();
        assert!(after.is_sorted(), "{participant}: {after:?}");
        assert_eq!(after.last(), Some(&25), "{participant}");
    }
}

#[tokio::test]
async fn a_rail_that_is_strict_no_more_loses_nothing_and_leaves_nothing_behind() {
    let (_database, bank) = change("strict", "none", 8).await;
    for (participant, mut numbers) in bank.lanes() {
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers, (1..=25).collect::<Vec<i64>>(), "{participant}");
    }
}
