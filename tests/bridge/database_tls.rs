//! The bridge reaches its database over TLS: to claim, to complete and to listen.

use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::process::{PATIENCE, Setup};
use crate::rows::{each_once, enqueue};
use crate::support::{Database, LentPostgres, Topic, trestle};

const ALL_DONE: &str = "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending)";
const ASLEEP: &str = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted)";
const BRIDGE: &str =
    "FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE application_name = 'bridge'";

async fn wait_for(client: &Client, question: &str) {
    let until = Instant::now() + PATIENCE;
    while !client.query_one(question, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < until, "never: {question}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

#[tokio::test]
async fn rows_are_delivered_and_every_connection_is_verified_in_full() {
    let (server, topic) = (LentPostgres::secured().await, Topic::new().await);
    let url = server.url(&format!("sslmode=verify-full&{}&application_name=bridge", server.root()));
    trestle(&url, &["migrate"]).assert().success();
    let client = server.connect().await;
    let elsewhere = Database::empty().await;
    let setup = Setup::kafka(&elsewhere, &topic)
        .await
        .and("[relay]\npoll_ms = 3600000\n")
        .env("DATABASE_URL", &url);
    let mut bridge = setup.run();
    for _ in 0..2 {
        // Nothing but a notification, heard over TLS, wakes it.
        wait_for(&client, ASLEEP).await;
        enqueue(&client, "kafka", 5, 50).await;
        wait_for(&client, ALL_DONE).await;
    }
    wait_for(&client, &format!("SELECT count(*) >= 3 AND bool_and(ssl) {BRIDGE}")).await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    each_once(&topic, 100).await;
}

#[tokio::test]
async fn a_bridge_that_does_not_believe_the_server_says_why() {
    let (server, topic) = (LentPostgres::secured().await, Topic::new().await);
    let parameters = format!("sslmode=verify-full&sslrootcert={}", server.file("foreign-ca.pem"));
    let url = server.url(&parameters).replace("trestle:trestle", "trestle:hunter2");
    let elsewhere = Database::empty().await;
    let setup = Setup::kafka(&elsewhere, &topic).await.env("DATABASE_URL", &url);
    let bridge = setup.run();
    bridge.logged("none of the authorities in `sslrootcert`").await;
    assert!(!bridge.log().contains("hunter2"), "{}", bridge.log());
}
