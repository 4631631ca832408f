//! The runbook's way to empty a default partition, as an operator would copy it.

use tokio_postgres::Client;

use crate::calls::{claim, complete, enqueue};
use crate::steps::{count, run};
use crate::support::Database;
use crate::upkeep::upkeep;
use crate::upkeep_partitions::LOSE_PARTITIONS;

const IN_DEFAULT: &str = "SELECT count(*) FROM outbox.payment_outbox_attempts_default";
const EVENTS_IN_DEFAULT: &str = "SELECT count(*) FROM outbox.payment_outbox_events_default";
/// Everything that is said of a row, wherever it lies.
const LEDGER: &str = "SELECT COALESCE(jsonb_agg(to_jsonb(a) ORDER BY a.attempt_id), '[]')::text FROM outbox.payment_outbox_attempts AS a";
const OPEN: &str = "SELECT count(*) FROM pg_inherits AS i \
    WHERE i.inhparent IN ('outbox.payment_outbox_attempts'::regclass, 'outbox.payment_outbox_events'::regclass) \
      AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = i.inhrelid AND t.tgname = 'append_only' AND t.tgenabled = 'A')";

/// The block that moves rows, for the ledger or for the events.
fn remedy(table: &str, key: &str) -> String {
    let page = include_str!("../../docs/runbook.md");
    let mut blocks = page.split("```sql\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.find(|block| block.starts_with("BEGIN;")).expect("the runbook has it");
    block.replace("payment_outbox_attempts", table).replace("outbox_id", key)
}

async fn ledger(client: &Client) -> String {
    client.query_one(LEDGER, &[]).await.unwrap().get(0)
}

/// Rows that were delivered while no day had a partition.
async fn deliver_without_partitions(client: &Client) {
    for parent in ["payment_outbox_attempts", "payment_outbox_events"] {
        run(client, &LOSE_PARTITIONS.replace("payment_outbox_attempts", parent)).await;
    }
    for participant in ["alice", "bob"] {
        enqueue(client, participant, "kafka").await;
    }
    for row in claim(client, "worker", 10).await {
        complete(client, "worker", &row, "DISPATCHED").await.unwrap();
    }
}

#[tokio::test]
async fn the_runbook_empties_the_default_partitions_and_loses_nothing() {
    let database = Database::new().await;
    let client = database.connect().await;
    deliver_without_partitions(&client).await;
    let before = ledger(&client).await;
    assert_eq!(count(&client, IN_DEFAULT).await, 2);
    assert!(count(&client, EVENTS_IN_DEFAULT).await > 0);

    run(&client, &remedy("payment_outbox_attempts", "outbox_id")).await;
    run(&client, &remedy("payment_outbox_events", "event_id")).await;

    for none in [IN_DEFAULT, EVENTS_IN_DEFAULT, OPEN] {
        assert_eq!(count(&client, none).await, 0, "{none}");
    }
    assert_eq!(ledger(&client).await, before);
    let said = upkeep(&client).await.unwrap();
    assert!(said.iter().all(|said| said.action != "alarm"), "{said:?}");
    // The bridge goes on with its own rights.
    let bridge = database.connect_as("symphony_executor").await;
    enqueue(&client, "carol", "kafka").await;
    for row in claim(&bridge, "worker", 10).await {
        complete(&bridge, "worker", &row, "DISPATCHED").await.unwrap();
    }
    assert_eq!(count(&client, IN_DEFAULT).await, 0);
}
