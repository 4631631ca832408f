//! What is asked often is answered by an index, whatever the tables hold.

use tokio_postgres::Client;

use super::calls::{claim, complete, enqueue};
use super::shards;
use super::steps::{count, run};
use super::support::Database;

/// Ten thousand lanes wait, six thousand rows are leased, four thousand are in the ledger.
async fn filled(database: &Database) -> Client {
    let client = database.connect().await;
    let many = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object(\
        'instruction_id', 'i' || i, 'participant_id', 'p' || i, 'idempotency_key', 'k', 'rail_type', 'bank', \
        'payload', '{}'::jsonb)) FROM generate_series(1, 20000) AS i))";
    assert_eq!(count(&client, many).await, 20_000);
    for worker in ["done", "leased-1", "leased-2"] {
        let lease = "SELECT count(*) FROM outbox.claim_outbox_batch($1, $2, 600)";
        client
            .query_one(lease, &[&if worker == "done" { 4000 } else { 3000 }, &worker])
            .await
            .unwrap();
    }
    run(
        &client,
        "SELECT count(*) FROM (SELECT array_agg(p.outbox_id) AS ids, array_agg(p.lease_token) AS tokens, \
             array_agg('DISPATCHED'::outbox.outbox_attempt_state) AS states \
             FROM outbox.payment_outbox_pending AS p WHERE p.claimed_by = 'done') AS b, \
           LATERAL outbox.complete_outbox_batch('done', b.ids, b.tokens, b.states); ANALYZE",
    )
    .await;
    client
}

/// What is asked, the index (of the table that has the rows) that has to answer, and the table.
const QUESTIONS: [(&str, &str, &str); 7] = [
    (
        "SELECT turn_id FROM outbox.payment_outbox_turns WHERE worker_id IS NULL AND rail_type = 'bank' \
         AND shard = -1 AND due_at <= '2100-01-01' ORDER BY due_at, turn_id LIMIT 50",
        "outbox.payment_outbox_turns_due",
        "outbox.payment_outbox_turns",
    ),
    (
        "SELECT turn_id FROM outbox.payment_outbox_turns WHERE worker_id IS NOT NULL \
         AND due_at <= '2026-01-01' ORDER BY due_at LIMIT 50",
        "outbox.payment_outbox_turns_expiry",
        "outbox.payment_outbox_turns",
    ),
    (
        "SELECT turn_id FROM outbox.payment_outbox_turns WHERE worker_id = 'nobody'",
        "outbox.payment_outbox_turns_worker",
        "outbox.payment_outbox_turns",
    ),
    (
        "SELECT created_at FROM outbox.payment_outbox_pending WHERE dead_letter_of IS NOT NULL ORDER BY outbox_id LIMIT 1",
        "outbox.payment_outbox_pending_dead_letters_waiting",
        "outbox.payment_outbox_pending",
    ),
    (
        "SELECT state FROM outbox.payment_outbox_attempts WHERE outbox_id = (SELECT outbox.uuidv7()) ORDER BY attempt_no",
        "outbox.payment_outbox_attempts_pkey",
        "outbox.payment_outbox_attempts",
    ),
    (
        "SELECT state FROM outbox.payment_outbox_attempts WHERE instruction_id = 'i77'",
        "outbox.payment_outbox_attempts_instruction",
        "outbox.payment_outbox_attempts",
    ),
    (
        "SELECT outbox_id FROM outbox.payment_outbox_keys WHERE instruction_id = 'i77' AND idempotency_key = 'k'",
        "outbox.payment_outbox_keys_pkey",
        "outbox.payment_outbox_keys",
    ),
];

/// The index, or its part that belongs to the largest partition: empty ones may well be scanned.
const PART: &str = "SELECT c.relname::text FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid \
    JOIN pg_class AS t ON t.oid = i.indrelid \
    WHERE c.oid = $1::text::regclass OR c.oid IN (SELECT relid FROM pg_partition_tree($1::text::regclass)) \
    ORDER BY t.reltuples * (t.relkind = 'r')::int DESC LIMIT 1";

async fn plan(client: &Client, question: &str) -> String {
    let lines = client.query(&format!("EXPLAIN {question}"), &[]).await.unwrap();
    lines.iter().map(|line| line.get::<_, String>(0) + "\n").collect()
}

#[tokio::test]
async fn what_is_asked_often_is_answered_by_an_index() {
    let database = Database::new().await;
    let client = filled(&database).await;
    for (question, index, table) in QUESTIONS {
        let part: String = client.query_one(PART, &[&index]).await.unwrap().get(0);
        let plan_with = plan(&client, question).await;
        assert!(plan_with.contains(&part), "{part} does not answer {question}:\n{plan_with}");

        run(&client, "BEGIN").await;
        let constraint = index.trim_start_matches("outbox.");
        let drop = if index.ends_with("_pkey") {
            format!("ALTER TABLE {table} DROP CONSTRAINT {constraint} CASCADE")
        } else {
            format!("DROP INDEX {index}")
        };
        run(&client, &drop).await;
        let plan_without = plan(&client, question).await;
        assert!(!plan_without.contains(&part), "{plan_without}");
        run(&client, "ROLLBACK").await;
    }
}

/// How many rows of its tables a call reads, of the twenty thousand that are there.
async fn rows_read(client: &Client, call: impl AsyncFnOnce(&Client)) -> i64 {
    const READ: &str = "SELECT COALESCE(sum(seq_tup_read + COALESCE(idx_tup_fetch, 0)), 0)::int8 \
        FROM pg_stat_xact_user_tables WHERE schemaname = 'outbox'";
    run(client, "BEGIN").await;
    // The counters may still hold what earlier transactions of the connection read.
    let before = count(client, READ).await;
    call(client).await;
    let read = count(client, READ).await - before;
    run(client, "ROLLBACK").await;
    read
}

/// What a claim and a completion of ten rows, a repair that finds nothing, an enqueue, and the gauges of
/// lanes read.
async fn work(client: &Client) -> [i64; 4] {
    let claimed = rows_read(client, async |client: &Client| {
        let rows = claim(client, "w", 10).await;
        assert_eq!(rows.len(), 10);
        complete(client, "w", &rows[0], "DISPATCHED").await.unwrap();
    });
    let claimed = claimed.await;
    let repair = "SELECT outbox.repair_expired_leases(100, 'r')";
    let repaired = rows_read(client, async |client: &Client| run(client, repair).await).await;
    let enqueue = "SELECT outbox.enqueue_payment_outbox('i20000', 'p20000', 'k', 'bank', '{}')";
    let enqueued = rows_read(client, async |client: &Client| run(client, enqueue).await).await;
    let gauges = "SELECT FROM outbox.lane_gauges(), outbox.waiting_rails('{bank,kafka}')";
    let counted = rows_read(client, async |client: &Client| run(client, gauges).await).await;
    [claimed, repaired, enqueued, counted]
}

#[tokio::test]
async fn the_functions_read_no_more_than_they_need() {
    let database = Database::new().await;
    let [claimed, repaired, enqueued, counted] = work(&filled(&database).await).await;
    assert!(claimed < 500, "claim and complete read {claimed} rows");
    assert!(repaired < 50, "repair read {repaired} rows");
    assert!(enqueued < 50, "enqueue read {enqueued} rows");
    assert!(counted < 3_000, "the gauges read {counted} rows");
}

#[tokio::test]
async fn without_the_indexes_of_the_turns_everything_is_read() {
    let database = Database::new().await;
    let client = filled(&database).await;
    let drop = "DROP INDEX outbox.payment_outbox_turns_due, outbox.payment_outbox_turns_expiry";
    run(&client, drop).await;
    let [claimed, repaired, _, counted] = work(&client).await;
    assert!(claimed > 5_000, "claim read {claimed} rows");
    assert!(repaired > 5_000, "repair read {repaired} rows");
    assert!(counted > 5_000, "the gauges read {counted} rows");
}

/// How many partitions of the ledger a claim of a new row opens.
async fn ledger_opened_by_a_claim(database: &Database) -> i64 {
    const OPENED: &str = "SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() \
        AND relation IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = 'outbox.payment_outbox_attempts'::regclass)";
    let client = database.connect().await;
    enqueue(&client, "p", "bank").await;
    run(&client, "BEGIN").await;
    assert_eq!(claim(&client, "w", 10).await.len(), 1);
    count(&client, OPENED).await
}

#[tokio::test]
async fn a_claim_of_new_rows_costs_the_same_however_many_days_are_kept() {
    assert_eq!(ledger_opened_by_a_claim(&Database::new().await).await, 0);
}

#[tokio::test]
async fn a_claim_that_asked_the_ledger_about_every_row_would_open_all_of_it() {
    let database = Database::new().await;
    let only_then = " WHERE t.attempt_count > 0 OR t.replay_of IS NOT NULL";
    database.take_out("claim_outbox_batch", only_then, "").await;
    assert!(ledger_opened_by_a_claim(&database).await > 3);
}

/// With a batch under way of a worker that died or of its own, and with none: what else waits in the same lanes is not looked at.
#[tokio::test]
async fn taking_a_shard_up_reads_no_backlog() {
    let database = Database::new().await;
    let client = shards::owned(&database).await;
    let batch = shards::claim(&client, "w1", 0, 1).await.len();
    shards::enqueue(&client, 10_000).await;
    let taken_up = async |worker: &str, epoch: i64| {
        let take_up = async |client: &Client| {
            let (_, requeued, halted) =
                shards::reconcile(client, worker, 0, epoch, &[], "").await.unwrap();
            assert_eq!((usize::try_from(requeued).unwrap(), halted), (batch, None));
        };
        rows_read(&client, take_up).await
    };
    let own = taken_up("w1", 1).await;
    assert!(own < 1_000, "its own batch: {own} rows");
    shards::take_over(&client).await;
    let of_another = taken_up("w2", 2).await;
    assert!(of_another < 1_000, "of a worker that died: {of_another} rows");
    let none = rows_read(&client, async |client: &Client| {
        shards::reconcile(client, "w2", 1, 2, &[], "").await.unwrap();
    });
    let none = none.await;
    assert!(none < 100, "nothing under way: {none} rows");
}
