//! A drain ends when nothing is left that it could deliver.

use std::time::Duration;

use axum::http::StatusCode;

use crate::rows::{count, enqueue};
use crate::support::Database;
use crate::web::Bank;

/// Rows under suspicion are sent alone, and the others given back for a second meanwhile.
#[tokio::test]
async fn a_drain_waits_for_what_it_gave_back_itself() {
    const CLAIM: &str =
        "SELECT outbox_id FROM outbox.claim_outbox_batch(10, 'somebody', 60, ARRAY['bank'])";
    const REPAIR: &str = "SELECT outbox_id FROM outbox.repair_expired_leases(10, 'somebody')";
    let (database, bank) = (Database::new().await, Bank::open(StatusCode::OK).await);
    database.control_clock().await;
    let client = database.connect().await;
    enqueue(&client, "bank", 3, 3).await;
    for _ in 0..2 {
        assert_eq!(client.query(CLAIM, &[]).await.unwrap().len(), 3);
        database.let_the_leases_pass().await;
        database.advance(Duration::from_secs(1)).await;
        assert_eq!(client.query(REPAIR, &[]).await.unwrap().len(), 3);
        database.advance(Duration::from_secs(5)).await;
    }
    let mut drain = bank.setup(&database).await.start(&["drain"]);
    assert!(drain.ended().await.success(), "{}", drain.log());
    assert_eq!(count(&database, "DISPATCHED").await, 3, "{}", drain.log());
    assert_eq!(drain.log().matches("it is sent alone").count(), 3, "{}", drain.log());
}
