//! Rows that were lost with their workers, and go alone.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::scene::Scene;
use crate::rows::enqueue;

#[tokio::test]
async fn a_suspect_does_not_wait_for_another_rail_that_is_slow() {
    let scene = Scene::with_shards(1, "").await;
    let client = scene.database.connect().await;
    enqueue(&client, "kafka", 1, 1).await;
    for _ in 0..2 {
        scene.setup.doomed("eos_sending").ended().await;
        scene.let_the_leases_pass().await;
    }
    // It takes requests, and never answers.
    let bank = TcpListener::bind("127.0.0.1:0").unwrap();
    enqueue(&client, "bank", 1, 1).await;
    let setup = scene.setup.clone().instead("lease_seconds = 10", "lease_seconds = 60");
    let worker = setup
        .and(&format!(
            "[rails.bank]\nkind = \"http\"\nurl = \"http://{}/\"\nschema = \"any\"\ntimeout_seconds = 25\n",
            bank.local_addr().unwrap()
        ))
        .run();
    worker.logged("it is sent alone").await;
    let began = Instant::now();
    crate::rows::wait_for(
        &scene.database,
        "SELECT count(*) = 1 FROM outbox.payment_outbox_attempts WHERE rail_type = 'kafka' AND state = 'DISPATCHED'",
    )
    .await;
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(scene.topic.consume_committed().await.len(), 1);
}
