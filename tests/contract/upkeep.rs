//! Ledger upkeep as a worker calls it, and what a test asks about partitions.

use std::time::{Duration, Instant};

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use crate::calls::{complete, enqueue_key};
use crate::lane_acts::{PARTICIPANT, RAIL, claim_rail};
use crate::support::Database;

/// Ids are made by the real clock: this much later today's partition is over, and tomorrow's is not.
pub(crate) const HOT_DAYS_LATER: Duration = Duration::from_secs(8 * 24 * 60 * 60);

/// Any transaction of the cluster, so also another test's, keeps a partition for a moment.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Enough for whatever one partition needs: a pass does one thing at a time.
pub(crate) const SOME_PASSES: usize = 8;

pub(crate) const OLDER_TRANSACTION: &str = "a transaction that is older than its end is still open";
pub(crate) const STILL_PENDING: &str = "a row of its time is still pending";
pub(crate) const UNRESOLVED: &str = "a FAILED row of its time is neither replayed nor dismissed";
pub(crate) const COMPLETED_LATE: &str = "a row of its time was completed within hot_days";
pub(crate) const ARCHIVED: &str = "detached into outbox_archive";

/// One line of what upkeep says it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) action: String,
    pub(crate) partition: Option<String>,
    pub(crate) detail: String,
}

impl Said {
    pub(crate) fn about(&self, partition: &str) -> bool {
        self.partition.as_deref() == Some(partition)
    }
}

/// One pass.
pub(crate) async fn upkeep(client: &Client) -> Result<Vec<Said>, Error> {
    const CALL: &str =
        "SELECT action, partition_name::text, detail FROM outbox.run_outbox_upkeep()";
    let rows = client.query(CALL, &[]).await?;
    let said =
        |row: &_| Said { action: field(row, 0), partition: name(row), detail: field(row, 2) };
    Ok(rows.iter().map(said).collect())
}

fn field(row: &tokio_postgres::Row, at: usize) -> String {
    row.get(at)
}

fn name(row: &tokio_postgres::Row) -> Option<String> {
    row.get(1)
}

/// What becomes of a partition whose time is over: passes are run until it is archived, or kept
/// for something else than somebody's transaction.
pub(crate) async fn verdict(client: &Client, partition: &str) -> String {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        let said = upkeep(client).await.unwrap();
        let about = said.iter().find(|said| said.about(partition) && said.action != "again");
        match about.map(|said| said.detail.as_str()) {
            None | Some(OLDER_TRANSACTION) => tokio::task::yield_now().await,
            Some(detail) => return detail.to_owned(),
        }
    }
    panic!("upkeep says nothing about {partition} but that transactions are open");
}

/// What the last of a few passes says about a partition while the caller keeps it as it is.
pub(crate) async fn after_some_passes(client: &Client, partition: &str) -> String {
    let mut last = String::new();
    for _ in 0..SOME_PASSES {
        let said = upkeep(client).await.unwrap();
        let about = said.into_iter().find(|said| said.about(partition) && said.action != "again");
        last = about.map_or(last, |said| said.detail);
    }
    last
}

/// The partition of the ledger to which a row's outcomes belong.
pub(crate) async fn partition_of(client: &Client, outbox_id: Uuid) -> String {
    const QUERY: &str = "SELECT partition_name::text FROM outbox.payment_outbox_partitions \
        WHERE parent_name = 'payment_outbox_attempts' AND from_id <= $1 AND $1 < to_id";
    client.query_one(QUERY, &[&outbox_id]).await.unwrap().get(0)
}

/// A row that is enqueued under `key` and delivered.
pub(crate) async fn deliver(client: &Client, key: &str) -> Uuid {
    let row = enqueue_key(client, "order", PARTICIPANT, key, RAIL).await.unwrap();
    deliver_next(client, RAIL).await;
    row.outbox_id
}

/// The next due row of the rail is delivered.
pub(crate) async fn deliver_next(client: &Client, rail: &str) {
    let claimed = claim_rail(client, rail, 1).await;
    complete(client, "worker", &claimed[0], "DISPATCHED").await.unwrap();
}

/// Gives the only pending row of the key an id of tomorrow, as if it were enqueued then.
pub(crate) async fn move_to_tomorrow(client: &Client, key: &str) -> Uuid {
    const MOVE: &str = "WITH tomorrow AS ( \
          SELECT overlay(outbox.uuidv7()::text PLACING left(outbox.uuidv7_floor(now() + interval '24 hours')::text, 13) FROM 1)::uuid AS id), \
        moved AS (UPDATE outbox.payment_outbox_pending SET outbox_id = id FROM tomorrow WHERE idempotency_key = $1) \
        UPDATE outbox.payment_outbox_keys SET outbox_id = id FROM tomorrow WHERE idempotency_key = $1 RETURNING id";
    client.query_one(MOVE, &[&key]).await.unwrap().get(0)
}

pub(crate) async fn set(client: &Client, settings: &str) {
    const CALL: &str = "SELECT outbox.set_outbox_settings($1::text::jsonb, 'ana', 'a test')";
    client.execute(CALL, &[&settings]).await.unwrap();
}

/// A database whose clock is ours, with one delivered row, and that row's partition.
pub(crate) async fn with_a_delivered_row() -> (Database, Client, String) {
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    let row = deliver(&client, "key").await;
    let partition = partition_of(&client, row).await;
    (database, client, partition)
}
