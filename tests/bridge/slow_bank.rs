//! A bank that takes its time: leases that are renewed, and an end that waits or does not.

use std::time::Duration;

use axum::http::StatusCode;

use crate::rows::{all_done, count, enqueue, wait_for};
use crate::shutdown::NOTHING_LEASED;
use crate::support::Database;
use crate::web::Bank;

/// The least that a shutdown waits for a bank that may take a second.
const SHORT: &str = "timeout_seconds = 1\n[relay]\nlease_seconds = 10\nshutdown_seconds = 6\n";

/// Who has leases is asked to make them longer after half of their time at the latest, and the time-out leaves
/// room for that.
const SLOW: &str = "timeout_seconds = 11\n[relay]\nlease_seconds = 16\n";

/// By the clock of the database the first payment takes longer than the lease that its lane began with.
#[tokio::test]
async fn a_lane_that_takes_longer_than_its_lease_keeps_it_and_pays_each_once() {
    const LEASE: &str = "SELECT lease_token::text, lease_expires_at::text FROM outbox.payment_outbox_pending \
        WHERE lease_token IS NOT NULL";
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    database.control_clock().await;
    bank.hang();
    let client = database.connect().await;
    enqueue(&client, "bank", 1, 6).await;
    let bridge = bank.setup(&database).await.and(SLOW).run();
    bank.asked(1).await;
    let lease = client.query_one(&format!("{LEASE} LIMIT 1"), &[]).await.unwrap();
    let (token, end): (String, String) = (lease.get(0), lease.get(1));
    let renewed = format!(
        "SELECT EXISTS ({LEASE} AND lease_token = '{token}' AND lease_expires_at > '{end}')"
    );
    wait_for(&database, &renewed).await;
    let left = format!("SELECT extract(epoch FROM timestamptz '{end}' - outbox.clock())::float8");
    let left: f64 = client.query_one(&left, &[]).await.unwrap().get(0);
    database.advance(Duration::from_secs_f64(left + 1.0)).await;
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    assert_eq!(bank.all_in_order(6), 0, "{}", bridge.log());
    assert_eq!(count(&database, "DISPATCHED").await, 6);
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 0);
    assert!(!bridge.log().contains("CONCURRENCY_EVENT"), "{}", bridge.log());
}

/// It does not know yet that somebody else has its lane; whoever renews its lease finds out.
#[tokio::test]
async fn a_lane_whose_lease_is_lost_sends_nothing_more() {
    const REPAIR: &str = "SELECT count(*) FROM outbox.repair_expired_leases(10, 'somebody')";
    const PAUSE: &str = "SELECT outbox.pause_outbox_lane('p0', 'bank', 'ann', 'why')";
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    database.control_clock().await;
    bank.hang();
    let client = database.connect().await;
    enqueue(&client, "bank", 1, 3).await;
    let bridge = bank.setup(&database).await.and(SLOW).run();
    bank.asked(1).await;
    client.execute(PAUSE, &[]).await.unwrap();
    database.let_the_leases_pass().await;
    client.execute(REPAIR, &[]).await.unwrap();
    bridge.logged("the lease of this lane is lost, nothing more of it is sent").await;
    bank.answer(StatusCode::OK);
    bridge.logged("CONCURRENCY_EVENT: the lease of this row is lost").await;
    assert_eq!(bank.requests().len(), 1);
    client
        .execute("SELECT outbox.resume_outbox_lane('p0', 'bank', 'ann', 'why')", &[])
        .await
        .unwrap();
    all_done(&database).await;
    assert_eq!(bank.all_in_order(3), 1, "the first, which nobody could write down");
    assert_eq!(count(&database, "DISPATCHED").await, 3);
}

/// A shutdown is given as long as a payment may take, so it ends well.
#[tokio::test]
async fn a_bank_that_hangs_holds_up_the_end_until_its_time_out_and_no_payment_is_lost() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    bank.hang();
    let setup = bank.setup(&database).await.and(SHORT);
    let mut bridge = setup.run();
    enqueue(&database.connect().await, "bank", 2, 4).await;
    bank.asked(2).await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    assert!(!bridge.log().contains("takes too long"), "{}", bridge.log());
    wait_for(&database, NOTHING_LEASED).await;
    assert_eq!(count(&database, "RETRYABLE").await, 2, "in doubt");
    bank.answer(StatusCode::OK);
    let _heir = setup.run();
    all_done(&database).await;
    assert_eq!(bank.all_in_order(4), 2, "the two in doubt");
    assert_eq!(count(&database, "DISPATCHED").await, 4);
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 0, "none waited for its lease");
}

#[tokio::test]
async fn a_second_signal_gives_up_on_a_bank_that_hangs_and_loses_nothing() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    bank.hang();
    let setup = bank.setup(&database).await;
    let mut bridge = setup.run();
    enqueue(&database.connect().await, "bank", 2, 4).await;
    bank.asked(2).await;
    bridge.signal("TERM");
    bridge.logged("asked to stop").await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    wait_for(&database, NOTHING_LEASED).await;
    let given_up = "SELECT count(*) = 2 AND bool_and(error_code = 'HTTP_ABANDONED' AND NOT counted) \
        FROM outbox.payment_outbox_attempts";
    wait_for(&database, given_up).await;
    bank.answer(StatusCode::OK);
    let _heir = setup.run();
    all_done(&database).await;
    assert_eq!(bank.all_in_order(4), 2, "the two that were given up");
    assert_eq!(count(&database, "DISPATCHED").await, 4);
}

/// Nobody can write down what the bank said, because an operator keeps the lane locked.
#[tokio::test]
async fn a_shutdown_that_takes_too_long_says_so_and_its_rows_wait_for_their_leases() {
    const LOCK: &str = "BEGIN; SELECT outbox.pause_outbox_lane('p0', 'bank', 'ann', 'why')";
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    database.control_clock().await;
    bank.hang();
    let setup = bank.setup(&database).await.and(SHORT);
    let mut bridge = setup.run();
    enqueue(&database.connect().await, "bank", 1, 1).await;
    bank.asked(1).await;
    let operator = database.connect().await;
    operator.batch_execute(LOCK).await.unwrap();
    bank.answer(StatusCode::OK);
    bridge.logged("somebody else has locked a lane").await;
    bridge.signal("TERM");
    assert_eq!(bridge.ended().await.code(), Some(1), "{}", bridge.log());
    let said = "shutting down took too long: 1 rows were still under way, their leases will expire";
    assert!(bridge.log().contains(said), "{}", bridge.log());
    operator.batch_execute("ROLLBACK").await.unwrap();
    database.let_the_leases_pass().await;
    let _heir = setup.run();
    all_done(&database).await;
    assert_eq!(bank.all_in_order(1), 1, "it came again, with its key");
    for state in ["ZOMBIE_REQUEUE", "DISPATCHED"] {
        assert_eq!(count(&database, state).await, 1, "{state}");
    }
}
