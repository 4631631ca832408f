//! Bridges make the ledger's partitions ahead and archive old ones, without being asked.

use std::time::{Duration, Instant};

use crate::process::{PATIENCE, Setup};
use crate::rows::wait_for;
use crate::support::{Database, Topic};

/// What is hot is over by then, and nothing was made ahead for it.
const LATER: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const GATE: i64 = 4_711;
const PARTITIONS: &str = "SELECT count(*) FROM outbox.payment_outbox_partitions";
const AHEAD: &str = "SELECT count(DISTINCT parent_name) = 2 FROM outbox.payment_outbox_partitions \
    WHERE ends_at > outbox.clock() + interval '3 days'";
const ARCHIVED: &str = "SELECT EXISTS (SELECT FROM pg_class WHERE relname LIKE 'payment_outbox_attempts_%' \
    AND relkind = 'r' AND relnamespace = 'outbox_archive'::regnamespace)";

/// Whoever makes partitions stands before the gate while the test keeps it shut.
async fn with_a_gate(database: &Database) -> tokio_postgres::Client {
    let passes = format!(
        "BEGIN\n  PERFORM set_config('lock_timeout', '0', true);\n  PERFORM pg_advisory_xact_lock({GATE});\n"
    );
    database.take_out("create_partitions", "BEGIN\n", &passes).await;
    let keeper = database.connect().await;
    keeper.batch_execute(&format!("SELECT pg_advisory_lock({GATE})")).await.unwrap();
    keeper
}

#[tokio::test]
async fn partitions_are_made_ahead_and_archived_by_one_bridge_at_a_time() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    database.control_clock().await;
    database.advance(LATER).await;
    let keeper = with_a_gate(&database).await;
    let count = async || keeper.query_one(PARTITIONS, &[]).await.unwrap().get::<_, i64>(0);
    let before = count().await;
    let setup = Setup::kafka(&database, &topic).await;
    let one = setup.run();
    let at_the_gate = format!(
        "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = {GATE} AND NOT granted \
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    wait_for(&database, &at_the_gate).await;
    // A call may not take for ever, so the other comes when one is there already.
    let other = setup.run();
    other.logged("upkeep is running in another session").await;
    wait_for(&database, &at_the_gate).await;
    assert_eq!(count().await, before);
    keeper.batch_execute(&format!("SELECT pg_advisory_unlock({GATE})")).await.unwrap();
    wait_for(&database, AHEAD).await;
    let made = "\"action\":\"created\"";
    one.logged(made).await;
    assert!(!other.log().contains(made), "{}", other.log());
    // Somebody's transaction, in whatever database, may keep a partition for a moment.
    let until = Instant::now() + PATIENCE;
    while !keeper.query_one(ARCHIVED, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < until, "nothing is archived");
        setup.run().logged("upkeep").await;
    }
    for bridge in [one, other] {
        assert!(!bridge.log().contains("housekeeping fails"), "{}", bridge.log());
    }
}
