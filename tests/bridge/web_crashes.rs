//! A worker of an HTTP rail that dies at each step of a payment's way.

use std::os::unix::process::ExitStatusExt as _;

use axum::http::StatusCode;

use crate::crashes::{Again, STEPS, sleeps_past_its_lease, was_stopped_in_time};
use crate::rows::{all_done, count, enqueue};
use crate::support::Database;
use crate::web::Bank;

const LEASE: &str = "timeout_seconds = 5\n[relay]\nlease_seconds = 11\n";
const PAYMENTS: usize = 60;

#[tokio::test]
async fn a_worker_killed_at_any_step_asks_the_bank_again_with_the_same_key_and_in_order() {
    for (step, again) in STEPS {
        let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
        database.control_clock().await;
        let setup = bank.setup(&database).await.and(LEASE);
        enqueue(&database.connect().await, "bank", 20, 60).await;
        assert_eq!(setup.doomed(step).ended().await.signal(), Some(9), "{step}");
        database.let_the_leases_pass().await;
        let _heir = setup.run();
        all_done(&database).await;
        let asked_again = bank.all_in_order(PAYMENTS);
        assert!(again.allows(asked_again), "{step}: {asked_again} came again, but {again:?}");
        let lost = usize::try_from(count(&database, "ZOMBIE_REQUEUE").await).unwrap();
        assert!(asked_again <= lost, "{step}: {asked_again} came again, but {lost} lost leases");
        assert_eq!(count(&database, "DISPATCHED").await, 60, "{step}");
        assert_eq!(count(&database, "FAILED").await, 0, "{step}");
    }
}

async fn sleeps_at(step: &str, again: Again) {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    let setup = bank.setup(&database).await.and(LEASE);
    enqueue(&database.connect().await, "bank", 30, 60).await;
    let log = sleeps_past_its_lease(&database, &setup, step, "bank").await;
    was_stopped_in_time(step, again, bank.all_in_order(PAYMENTS + 30), &log);
    assert_eq!(count(&database, "DISPATCHED").await, 90, "{step}");
    assert_eq!(count(&database, "FAILED").await, 0, "{step}");
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_as_it_has_claimed_sends_nothing_any_more() {
    sleeps_at("claimed", Again::Never).await;
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_before_it_hands_over_sends_nothing_any_more() {
    sleeps_at("validated", Again::Never).await;
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_as_it_has_handed_over_is_told_that_it_is_too_late_if_it_has_sent()
 {
    sleeps_at("handed_over", Again::Perhaps).await;
}

#[tokio::test]
async fn a_worker_that_sleeps_past_its_lease_before_it_has_read_the_answer_is_told_that_it_is_too_late()
 {
    sleeps_at("sent", Again::Surely).await;
}

/// The bank has the payment, and the worker has not heard of it.
#[tokio::test]
async fn a_worker_killed_before_the_bank_has_answered_asks_again_with_the_same_key() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    database.control_clock().await;
    bank.hang();
    let setup = bank.setup(&database).await;
    let worker = setup.run();
    enqueue(&database.connect().await, "bank", 4, 8).await;
    bank.asked(4).await;
    worker.signal("KILL");
    bank.answer(StatusCode::OK);
    database.let_the_leases_pass().await;
    let _heir = setup.run();
    all_done(&database).await;
    assert_eq!(bank.all_in_order(8), 4, "the heads of the four lanes");
    assert_eq!(count(&database, "DISPATCHED").await, 8);
}
