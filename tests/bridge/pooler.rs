//! Behind a real transaction pooler.

use crate::process::Setup;
use crate::rows::{all_done, complete_and_in_order, count, enqueue, wait_for};
use crate::sleeping::{ASLEEP, nobody_sees_what_is_due};
use crate::support::{Database, Pooler, Topic};

const NOTHING_LEASED: &str =
    "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE lease_token IS NOT NULL)";
const NO_SESSION_LOCKS: &str = "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";

#[tokio::test]
async fn polling_alone_delivers_through_a_pooler_with_several_workers_in_order() {
    let (database, topic) = (Database::new().await, Topic::with_partitions(3).await);
    nobody_sees_what_is_due(&database).await;
    let url = database.url_as("symphony_executor").await;
    let pooler = Pooler::in_front_of(&url).await;
    let setup = Setup::kafka(&database, &topic)
        .await
        .and("[relay]\nlisten = false\npoll_ms = 100\n")
        .env("DATABASE_URL", &pooler.instead_in(&url));
    let mut workers = [setup.run(), setup.run(), setup.run()];
    for _ in 0..5 {
        enqueue(&database.connect().await, "kafka", 100, 1_000).await;
    }
    all_done(&database).await;
    enqueue(&database.connect().await, "kafka", 100, 1_000).await;
    for worker in &mut workers {
        worker.signal("TERM");
        assert!(worker.ended().await.success(), "{}", worker.log());
    }
    wait_for(&database, NOTHING_LEASED).await;
    wait_for(&database, NO_SESSION_LOCKS).await;
    nothing_is_left_in_a_session(&pooler.instead_in(&url)).await;
    let _heir = setup.run();
    all_done(&database).await;
    complete_and_in_order(&database, &topic, 6_000).await;
    assert_eq!(count(&database, "ZOMBIE_REQUEUE").await, 0);
}

/// What a worker leaves in a session of the pooler, the next client finds there.
async fn nothing_is_left_in_a_session(url: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    let left = "SELECT current_setting('statement_timeout'), current_setting('idle_in_transaction_session_timeout'), \
        (SELECT count(*)::text FROM pg_prepared_statements), (SELECT count(*)::text FROM pg_listening_channels())";
    let messages = client.simple_query(left).await.unwrap();
    let row = messages.iter().find_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let found: Vec<_> = (0..4).map(|column| row.unwrap().get(column).unwrap()).collect();
    assert_eq!(found, ["0", "0", "0", "0"]);
}

#[tokio::test]
async fn a_direct_connection_to_listen_wakes_a_bridge_behind_a_pooler() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    nobody_sees_what_is_due(&database).await;
    let url = database.url_as("symphony_executor").await;
    let pooler = Pooler::in_front_of(&url).await;
    let setup = Setup::kafka(&database, &topic)
        .await
        .and(&format!("[relay]\npoll_ms = 3600000\n[database]\nlisten_url = \"{url}\"\n"))
        .env("DATABASE_URL", &pooler.instead_in(&url));
    let _workers = [setup.run(), setup.run()];
    for _ in 0..5 {
        wait_for(&database, ASLEEP).await;
        enqueue(&database.connect().await, "kafka", 1, 1).await;
        all_done(&database).await;
    }
    complete_and_in_order(&database, &topic, 5).await;
}
