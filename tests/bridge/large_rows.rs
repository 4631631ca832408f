//! Claims that take too long, and rows that are too large to claim many of.

use axum::http::StatusCode;

use crate::probes::Probes;
use crate::rows::{all_done, count, enqueue, wait_for};
use crate::support::Database;
use crate::web::Bank;

/// As the server gives up a claim that takes too long, without the time that it takes.
async fn claims_run_out_of_time(database: &Database, when: &str) {
    const PLACE: &str = "v_now := outbox.clock();";
    let cancel = format!("IF {when} THEN RAISE query_canceled; END IF; {PLACE}");
    database.take_out("claim_outbox_batch", PLACE, &cancel).await;
}

/// The rail's name comes after that of the other, and so does its claim.
async fn setup_of_two(database: &Database, bank: &Bank) -> crate::process::Setup {
    let setup = bank.setup(database).await;
    let other = setup.toml[setup.toml.find("[rails.bank]").unwrap()..].replace("bank", "other");
    setup.and(&other)
}

#[tokio::test]
async fn a_rail_whose_claims_fail_keeps_no_other_from_its_rows() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    claims_run_out_of_time(&database, "p_rail_types = '{bank}'").await;
    let client = database.connect().await;
    enqueue(&client, "bank", 5, 10).await;
    enqueue(&client, "other", 5, 10).await;
    let (setup, probes) = Probes::of(setup_of_two(&database, &bank).await);
    let bridge = setup.run();
    wait_for(&database, "SELECT count(*) = 10 FROM outbox.payment_outbox_attempts").await;
    bridge.logged("cannot claim; trying again until it works").await;
    // Nor from being of use.
    probes.say(true).await;
    enqueue(&client, "other", 5, 10).await;
    wait_for(&database, "SELECT count(*) = 20 FROM outbox.payment_outbox_attempts").await;
    assert_eq!(count(&database, "DISPATCHED").await, 20);
}

#[tokio::test]
async fn a_claim_that_runs_out_of_time_asks_for_less_until_it_succeeds() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    claims_run_out_of_time(&database, "p_batch_size > 2").await;
    let client = database.connect().await;
    enqueue(&client, "bank", 5, 20).await;
    enqueue(&client, "other", 5, 20).await;
    let mut drain = setup_of_two(&database, &bank).await.start(&["drain"]);
    assert!(drain.ended().await.success(), "{}", drain.log());
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 40);
}

#[tokio::test]
async fn a_drain_whose_smallest_claim_runs_out_of_time_says_so() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    claims_run_out_of_time(&database, "true").await;
    let mut drain = bank.setup(&database).await.start(&["drain"]);
    assert_eq!(drain.ended().await.code(), Some(1), "{}", drain.log());
    assert!(drain.log().contains("SQLSTATE 57014"), "{}", drain.log());
}

/// There is room for two hundred; but they would be two hundred megabytes.
#[tokio::test]
async fn what_is_under_way_is_bounded_in_bytes_too() {
    const LARGE: &str = "SELECT count(*) FROM generate_series(1, $1::int8) AS g, LATERAL outbox.enqueue_payment_outbox(
        gen_random_uuid() || 'i' || g, gen_random_uuid() || 'p' || g, 'key', 'bank', jsonb_build_object('amount', '10.00', 'currency', 'EUR',
        'destination', 'account', 'note', repeat('x', 1024 * 1024)))";
    const LEASED: &str =
        "SELECT count(*) FROM outbox.payment_outbox_pending WHERE lease_token IS NOT NULL";
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    let client = database.connect().await;
    let setup = bank.setup(&database).await.and("concurrency = 100\n");
    let _bridge = setup.run();
    client.execute(LARGE, &[&1_i64]).await.unwrap();
    all_done(&database).await;
    bank.hang();
    client.execute(LARGE, &[&100_i64]).await.unwrap();
    bank.asked(1 + 60).await;
    let leased: i64 = client.query_one(LEASED, &[]).await.unwrap().get(0);
    assert!((60..=64).contains(&leased), "{leased} MB were under way");
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 101);
}
