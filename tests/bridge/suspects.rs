//! Rows that were lost with their workers more than once, and go alone.

use std::time::Duration;

use axum::http::StatusCode;
use tokio_postgres::Client;

use crate::process::Setup;
use crate::rows::{all_done, count, enqueue, wait_for};
use crate::support::{Database, Topic};
use crate::web::Bank;

/// The ledger has two rows of which one was claimed before the other was written down, or at the same time.
const TOGETHER: &str = "SELECT count(*) FROM outbox.payment_outbox_attempts AS a \
    JOIN outbox.payment_outbox_attempts AS b ON a.outbox_id < b.outbox_id AND a.state = b.state \
    WHERE a.state = 'DISPATCHED' AND a.claimed_at <= b.completed_at AND b.claimed_at <= a.completed_at";

/// Two workers in a row die with whatever is there.
async fn lost_with_two_workers(database: &Database, setup: &Setup, place: &str) {
    use std::os::unix::process::ExitStatusExt as _;
    for _ in 0..2 {
        assert_eq!(setup.doomed(place).ended().await.signal(), Some(9));
        database.advance(Duration::from_secs(120)).await;
    }
}

/// Each of them was given back for ever, because the others, given back beside it, were not written down yet.
#[tokio::test]
async fn rows_that_were_lost_with_two_workers_are_sent_alone_with_the_shortest_lease_too() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    database.control_clock().await;
    let setup = Setup::kafka(&database, &topic).await.and("[relay]\nlease_seconds = 10\n");
    let client = database.connect().await;
    enqueue(&client, "kafka", 3, 3).await;
    lost_with_two_workers(&database, &setup, "handed_over").await;
    let heir = setup.run();
    all_done(&database).await;
    heir.logged_times("it is sent alone", 3).await;
    assert_eq!(client.query_one(TOGETHER, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// One payment of this participant.
async fn pay(client: &Client, participant: &str) {
    const CALL: &str = "SELECT outbox.enqueue_payment_outbox($1, $1, 'k', 'bank', \
        '{\"amount\": \"10.00\", \"currency\": \"EUR\", \"destination\": \"account\"}')";
    client.execute(CALL, &[&participant]).await.unwrap();
}

/// A worker has been round several times meanwhile: it says every few seconds that it is there.
async fn it_goes_round(database: &Database) {
    let seen = "SELECT max(seen_at)::text FROM outbox.payment_outbox_workers";
    for _ in 0..2 {
        let last: String = database.connect().await.query_one(seen, &[]).await.unwrap().get(0);
        let later = format!("SELECT max(seen_at) > '{last}' FROM outbox.payment_outbox_workers");
        wait_for(database, &later).await;
    }
}

#[tokio::test]
async fn a_suspect_waits_for_what_is_under_way_and_whatever_comes_waits_for_the_suspect() {
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    database.control_clock().await;
    let (setup, client) = (bank.setup(&database).await, database.connect().await);
    pay(&client, "suspect").await;
    lost_with_two_workers(&database, &setup, "validated").await;
    bank.hold(Some("first"));
    pay(&client, "first").await;
    let heir = setup.run();
    bank.asked(1).await;
    heir.logged("it is sent alone").await;
    it_goes_round(&database).await;
    assert_eq!(bank.asked_by(), ["first"]);
    bank.hold(Some("suspect"));
    bank.asked(2).await;
    pay(&client, "later").await;
    it_goes_round(&database).await;
    assert_eq!(bank.asked_by(), ["first", "suspect"]);
    bank.hold(None);
    all_done(&database).await;
    assert_eq!(bank.asked_by(), ["first", "suspect", "later"]);
    assert_eq!(count(&database, "DISPATCHED").await, 3);
}
