//! Shards: one owner at a time, one batch at a time, and what becomes of a batch whose owner is gone.

use tokio_postgres::Client;
use uuid::Uuid;

use super::calls::code;
use super::steps::{count, run};
use super::support::Database;

/// A rail with two shards, forty rows in ten lanes, and a worker that owns both shards and is ready.
pub(crate) async fn owned(database: &Database) -> Client {
    let client = database.connect().await;
    policies(&client, "exactly_once", 2).await.unwrap();
    enqueue(&client, 40).await;
    run(&client, "SELECT outbox.note_worker('w1', '{eos}'); SELECT outbox.note_worker('w2', '{eos}'); \
        UPDATE outbox.payment_outbox_workers SET started_at = started_at - interval '1 min', seen_at = seen_at - interval '1 min'; \
        UPDATE outbox.payment_outbox_workers SET seen_at = started_at, live_until = started_at + interval '1 ms' WHERE worker_id = 'w2'").await;
    run(&client, "SELECT outbox.lease_outbox_shards('w1', 'eos', 60)").await;
    for shard in [0, 1] {
        reconcile(&client, "w1", shard, 1, &[], "").await.unwrap();
    }
    client
}

async fn policies(
    client: &Client,
    delivery: &str,
    shards: i32,
) -> Result<(), tokio_postgres::Error> {
    let set = format!(
        "SELECT outbox.set_rail_policies('{{\"eos\": {{\"delivery\": \"{delivery}\", \"shards\": {shards}}}}}', 'ops', 'why')"
    );
    client.batch_execute(&set).await
}

pub(crate) async fn enqueue(client: &Client, rows: i32) {
    let many = format!(
        "SELECT count((outbox.enqueue_payment_outbox(gen_random_uuid()::text, 'p' || g % 10, 'k', 'eos', '{{}}')).outbox_id) \
         FROM generate_series(1, {rows}) AS g"
    );
    run(client, &many).await;
}

/// Says what was found of a shard since its stand: these rows, and what the register has as `(batch, rows)`.
pub(crate) async fn reconcile(
    client: &Client,
    worker: &str,
    shard: i16,
    epoch: i64,
    found: &[Uuid],
    register: &str,
) -> Result<(i32, i32, Option<String>), tokio_postgres::Error> {
    let (batches, rows) = register.split_once(',').unwrap_or_default();
    let call = format!(
        "SELECT d.recovered, d.requeued, d.halted_reason FROM outbox.payment_outbox_shards AS s, outbox.reconcile_outbox_shard('{worker}', 'eos', {shard}::smallint, {epoch}, s.batch, s.offsets, \
         $1::uuid[], array_fill(1::bigint, ARRAY[cardinality($1)]), array_fill('t/0@7'::text, ARRAY[cardinality($1)]), \
         '{{{batches}}}', '{{{rows}}}', NULLIF('{batches}', '')::bigint, '{{\"t\": {{\"0\": 5}}}}', 'me') \
         AS d WHERE s.rail_type = 'eos' AND s.shard = {shard}"
    );
    let row = client.query_one(&call, &[&found]).await?;
    Ok((row.get(0), row.get(1), row.get(2)))
}

/// Claims a batch for a shard: its rows, in lane order.
pub(crate) async fn claim(
    client: &Client,
    worker: &str,
    shard: i16,
    epoch: i64,
) -> Vec<(Uuid, Uuid)> {
    let call = "SELECT outbox_id, lease_token FROM outbox.claim_outbox_batch(1000, $1, 60, '{eos}', NULL, NULL, ARRAY[$2::int2], ARRAY[$3::int8], '{}', \
        ARRAY(SELECT s.batch FROM outbox.payment_outbox_shards AS s WHERE s.rail_type = 'eos' AND s.shard = $2))";
    let rows = client.query(call, &[&worker, &shard, &epoch]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

pub(crate) async fn complete(client: &Client, worker: &str, rows: &[(Uuid, Uuid)]) -> i64 {
    let (ids, tokens): (Vec<Uuid>, Vec<Uuid>) = rows.iter().copied().unzip();
    let call = "SELECT count(*) FILTER (WHERE refusal IS NULL) FROM outbox.complete_outbox_batch($1, $2::uuid[], $3::uuid[], \
        array_fill('DISPATCHED'::outbox.outbox_attempt_state, ARRAY[cardinality($2::uuid[])]))";
    client.query_one(call, &[&worker, &ids, &tokens]).await.unwrap().get(0)
}

/// The lease of the owner has passed, and another takes over.
pub(crate) async fn take_over(client: &Client) {
    run(client, "UPDATE outbox.payment_outbox_shards SET lease_expires_at = clock_timestamp() - interval '2 s'").await;
    run(client, "SELECT outbox.lease_outbox_shards('w2', 'eos', 60)").await;
}

#[tokio::test]
async fn a_shard_has_one_batch_at_a_time() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let first = claim(&client, "w1", 0, 1).await;
    assert!(!first.is_empty());
    enqueue(&client, 40).await;
    assert_eq!(claim(&client, "w1", 0, 1).await, []);
    assert_eq!(complete(&client, "w1", &first).await, i64::try_from(first.len()).unwrap());
    assert!(!claim(&client, "w1", 0, 1).await.is_empty());
}

#[tokio::test]
async fn neither_time_nor_repair_nor_an_operator_touches_a_batch() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let rows = claim(&client, "w1", 0, 1).await;
    run(&client, "UPDATE outbox.payment_outbox_shards SET lease_expires_at = '2000-01-01'").await;
    assert_eq!(
        count(&client, "SELECT count(*) FROM outbox.repair_expired_leases(100, 'r')").await,
        0
    );
    let ordinary = "SELECT count(*) FROM outbox.claim_outbox_batch(100, 'x', 60)";
    assert_eq!(count(&client, ordinary).await, 0, "an ordinary claim gets nothing of the rail");
    let skip = "SELECT outbox.skip_outbox_lane_head(p.participant_id, 'eos', 'ops', 'why') \
        FROM outbox.payment_outbox_pending AS p WHERE p.batch IS NOT NULL LIMIT 1";
    assert_eq!(code(&client.batch_execute(skip).await.unwrap_err()), "P7007");
    let under_way =
        "SELECT count(*) FROM outbox.payment_outbox_pending WHERE batch = 1 AND shard = 0";
    assert_eq!(count(&client, under_way).await, i64::try_from(rows.len()).unwrap());
}

/// What a late owner does to a batch that its successor has under way: how many of its rows are back.
async fn late_owner(database: &Database) -> i64 {
    let client = owned(database).await;
    take_over(&client).await;
    reconcile(&client, "w2", 0, 2, &[], "").await.unwrap();
    let rows = claim(&client, "w2", 0, 2).await;
    assert!(!rows.is_empty());
    // It looked before its successor sent anything, and has found nothing.
    let late = reconcile(&client, "w1", 0, 1, &[], "").await;
    if let Err(error) = late {
        assert_eq!(code(&error), "P7014");
    }
    i64::try_from(rows.len()).unwrap() - complete(&client, "w2", &rows).await
}

#[tokio::test]
async fn an_owner_of_an_older_epoch_decides_nothing() {
    let database = Database::new().await;
    assert_eq!(late_owner(&database).await, 0);
}

#[tokio::test]
async fn without_the_look_at_owner_and_epoch_it_would_take_a_batch_from_its_successor() {
    let database = Database::new().await;
    let guard =
        "v_shard.owner IS DISTINCT FROM p_worker_id OR v_shard.epoch IS DISTINCT FROM p_epoch";
    database.take_out("hold_shard", guard, "false").await;
    assert!(late_owner(&database).await > 0, "its rows are free to be sent again");
}

/// How many rows an owner whose shard was taken over can still record.
async fn late_outcomes(database: &Database) -> i64 {
    let client = owned(database).await;
    let rows = claim(&client, "w1", 0, 1).await;
    take_over(&client).await;
    complete(&client, "w1", &rows).await
}

#[tokio::test]
async fn an_owner_whose_shard_was_taken_over_records_nothing() {
    let database = Database::new().await;
    assert_eq!(late_outcomes(&database).await, 0);
}

#[tokio::test]
async fn without_the_look_at_the_epoch_it_would() {
    let database = Database::new().await;
    database.take_out("current_turns", "s.owner = p_worker_id AND s.epoch = t.epoch", "true").await;
    assert!(late_outcomes(&database).await > 0);
}

#[tokio::test]
async fn what_was_found_is_delivered_and_the_rest_is_requeued() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let rows = claim(&client, "w1", 0, 1).await;
    take_over(&client).await;
    // The first rows of a lane: a torn transaction has a beginning of each.
    let lane = "SELECT array_agg(outbox_id ORDER BY sequence_id) FROM outbox.payment_outbox_pending \
        WHERE batch = 1 AND shard = 0 GROUP BY participant_id LIMIT 1";
    let mut found: Vec<Uuid> = client.query_one(lane, &[]).await.unwrap().get(0);
    found.truncate(2);
    let (recovered, requeued, halted) = reconcile(&client, "w2", 0, 2, &found, "").await.unwrap();
    assert_eq!((recovered, halted), (2, None));
    assert_eq!(usize::try_from(requeued).unwrap(), rows.len() - 2);
    let ledger = "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED' AND worker_id = 'w2' \
        AND rail_code = 'RECOVERED_FROM_TAIL' AND rail_reference = 't/0@7' AND error_message LIKE '%sent by w1%'";
    assert_eq!(count(&client, ledger).await, 2);
    let zombies = "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state = 'ZOMBIE_REQUEUE' AND worker_id = 'w1'";
    assert_eq!(count(&client, zombies).await, i64::from(requeued));
}

#[tokio::test]
async fn rows_whose_claim_the_database_has_forgotten_are_delivered_when_they_are_found() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let lane = "SELECT array_agg(p.outbox_id ORDER BY p.sequence_id) FROM outbox.payment_outbox_pending AS p \
        JOIN outbox.payment_outbox_lanes AS l ON l.participant_id = p.participant_id WHERE l.shard = 0 GROUP BY p.participant_id LIMIT 1";
    let found: Vec<Uuid> = client.query_one(lane, &[]).await.unwrap().get(0);
    let (recovered, requeued, halted) =
        reconcile(&client, "w1", 0, 1, &found, &format!("1,{}", found.len())).await.unwrap();
    assert_eq!((usize::try_from(recovered).unwrap(), requeued, halted), (found.len(), 0, None));
    let batch = "SELECT batch FROM outbox.payment_outbox_shards WHERE shard = 0";
    assert_eq!(count(&client, batch).await, 1, "the number is not used again");
}

#[tokio::test]
async fn where_register_and_topics_disagree_the_shard_waits_for_an_operator() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let rows = claim(&client, "w1", 0, 1).await;
    let (_, _, halted) = reconcile(&client, "w1", 0, 1, &[], "1,3").await.unwrap();
    assert!(halted.unwrap().contains("committed with 3 rows, but the topics have 0"));
    assert_eq!(claim(&client, "w1", 0, 1).await, []);
    run(&client, "SELECT outbox.lease_outbox_shards('w2', 'eos', 60)").await;
    let free =
        "SELECT count(*) FROM outbox.payment_outbox_shards WHERE shard = 0 AND owner IS NULL";
    assert_eq!(count(&client, free).await, 1, "nobody takes it");
    assert_eq!(code(&policies(&client, "idempotent", 16).await.unwrap_err()), "P7015");
    let resume =
        "SELECT outbox.resume_outbox_shard('eos', 0::smallint, 'ops', 'looked at the topic')::int8";
    assert_eq!(count(&client, resume).await, i64::try_from(rows.len()).unwrap());
    assert_eq!(code(&client.batch_execute(resume).await.unwrap_err()), "P7016");
}

/// Its cluster is gone for good, perhaps, and no owner will ever find out.
#[tokio::test]
async fn an_operator_decides_about_a_batch_that_nobody_can_find_out_about() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let resume = "SELECT outbox.resume_outbox_shard('eos', 0::smallint, 'ops', 'the cluster burnt down')::int8";
    let rows = claim(&client, "w1", 0, 1).await;
    assert_eq!(code(&client.batch_execute(resume).await.unwrap_err()), "P7016", "it is carried");
    take_over(&client).await;
    assert_eq!(count(&client, resume).await, i64::try_from(rows.len()).unwrap());
    assert_eq!(complete(&client, "w1", &rows).await, 0, "who sent it is not heard any more");
    reconcile(&client, "w2", 0, 2, &[], "").await.unwrap();
}

#[tokio::test]
async fn a_lease_of_a_shard_is_renewed_when_a_quarter_of_it_is_gone_and_in_nobodys_way() {
    let database = Database::new().await;
    let (client, claimer) = (owned(&database).await, database.connect().await);
    let gone = |seconds: i32| {
        format!(
            "UPDATE outbox.payment_outbox_shards SET lease_expires_at = clock_timestamp() + interval '{} s'",
            60 - seconds
        )
    };
    let renewed = "SELECT count(*) FROM outbox.payment_outbox_shards WHERE lease_expires_at > clock_timestamp() + interval '59 s'";
    let lease = "SET lock_timeout = '50ms'; SELECT outbox.lease_outbox_shards('w1', 'eos', 60)";
    for (seconds, of_two) in [(14, 0), (16, 2)] {
        run(&client, &gone(seconds)).await;
        run(&client, lease).await;
        assert_eq!(count(&client, renewed).await, of_two, "{seconds} s");
    }
    run(&client, &gone(29)).await;
    run(
        &claimer,
        "BEGIN; SELECT FROM outbox.payment_outbox_shards WHERE shard = 0 FOR NO KEY UPDATE",
    )
    .await;
    run(&client, lease).await;
    assert_eq!(count(&client, renewed).await, 1, "the other one can wait");
    run(&claimer, "ROLLBACK").await;
    run(&client, &gone(31)).await;
    run(
        &claimer,
        "BEGIN; SELECT FROM outbox.payment_outbox_shards WHERE shard = 0 FOR NO KEY UPDATE",
    )
    .await;
    let waited = client.batch_execute(lease).await.unwrap_err();
    assert_eq!(code(&waited), "55P03", "now it cannot");
}

/// Whether a drain has to stay: `(waits, halted)`.
#[tokio::test]
async fn what_is_left_in_shards_is_what_no_other_live_worker_delivers() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let asked = async |worker: &str| {
        let left = "SELECT waits, halted FROM outbox.outbox_shards_left($1, 'eos')";
        let row = client.query_one(left, &[&worker]).await.unwrap();
        (row.get::<_, bool>(0), row.get::<_, bool>(1))
    };
    run(&client, "SELECT outbox.note_worker('w1', '{eos}')").await;
    assert_eq!(asked("w1").await, (true, false), "its own");
    assert_eq!(asked("w2").await, (false, false), "another's, who is there");
    run(&client, "UPDATE outbox.payment_outbox_workers SET seen_at = started_at").await;
    assert_eq!(asked("w2").await, (true, false), "another's, who is gone");
    let (first, second) = (claim(&client, "w1", 0, 1).await, claim(&client, "w1", 1, 1).await);
    assert_eq!(asked("w1").await, (true, false), "a batch");
    reconcile(&client, "w1", 0, 1, &[], "1,999").await.unwrap();
    complete(&client, "w1", &second).await;
    assert_eq!(asked("w1").await, (false, true), "{} rows of a halted shard", first.len());
}

/// Where there is no order each of them waits in a lane of its own from then on.
#[tokio::test]
async fn what_an_operator_lets_go_on_is_claimed_again_also_where_there_is_no_order() {
    for ordering in ["strict", "none"] {
        let database = Database::new().await;
        let client = owned(&database).await;
        let unordered = format!(
            "SELECT outbox.set_rail_policies('{{\"eos\": {{\"delivery\": \"exactly_once\", \"shards\": 2, \"ordering\": \"{ordering}\"}}}}', 'ops', 'why')"
        );
        run(&client, &unordered).await;
        let mut rows = ids(claim(&client, "w1", 0, 1).await);
        let (_, _, halted) = reconcile(&client, "w1", 0, 1, &[], "1,3").await.unwrap();
        assert!(halted.is_some());
        run(
            &client,
            "SELECT outbox.resume_outbox_shard('eos', 0::smallint, 'ops', 'looked at the topic')",
        )
        .await;
        run(&client, "SELECT outbox.lease_outbox_shards('w1', 'eos', 60)").await;
        reconcile(&client, "w1", 0, 2, &[], "").await.unwrap();
        run(&client, "UPDATE outbox.payment_outbox_pending SET next_attempt_at = created_at; \
            UPDATE outbox.payment_outbox_turns SET due_at = clock_timestamp() WHERE worker_id IS NULL").await;
        let mut again = ids(claim(&client, "w1", 0, 2).await);
        rows.sort();
        again.sort();
        assert_eq!(again, rows, "{ordering}");
    }
}

fn ids(rows: Vec<(Uuid, Uuid)>) -> Vec<Uuid> {
    rows.into_iter().map(|(id, _)| id).collect()
}

#[tokio::test]
async fn a_topic_that_is_gone_is_forgotten_when_nothing_was_under_way_in_it() {
    let database = Database::new().await;
    let client = owned(&database).await;
    run(
        &client,
        "SELECT outbox.note_shard_offsets('w1', 'eos', 0::smallint, 1, '{\"gone\": {\"0\": 3}}')",
    )
    .await;
    take_over(&client).await;
    reconcile(&client, "w2", 0, 2, &[], "").await.unwrap();
    let known = "SELECT array_agg(o.topic) FROM outbox.payment_outbox_shards AS s, jsonb_object_keys(s.offsets) AS o (topic) WHERE s.shard = 0";
    let known: Vec<String> = client.query_one(known, &[]).await.unwrap().get(0);
    assert_eq!(known, ["t"]);
}

#[tokio::test]
async fn delivery_and_shards_change_only_while_no_batch_is_under_way() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let rows = claim(&client, "w1", 0, 1).await;
    for (delivery, shards) in [("idempotent", 2), ("exactly_once", 4)] {
        assert_eq!(code(&policies(&client, delivery, shards).await.unwrap_err()), "P7015");
    }
    complete(&client, "w1", &rows).await;
    policies(&client, "exactly_once", 4).await.unwrap();
    let elsewhere = "SELECT count(*) FROM outbox.payment_outbox_lanes WHERE shard <> outbox.shard_of(participant_id, rail_type)";
    assert_eq!(count(&client, elsewhere).await, 0);
    policies(&client, "idempotent", 16).await.unwrap();
    let ordinary = "SELECT count(*) FROM outbox.claim_outbox_batch(1000, 'x', 60)";
    assert_eq!(count(&client, ordinary).await, 40 - i64::try_from(rows.len()).unwrap());
    // Back again: what is leased the ordinary way ends the ordinary way, and is not in any batch.
    policies(&client, "exactly_once", 2).await.unwrap();
    run(&client, "SELECT outbox.lease_outbox_shards('w2', 'eos', 60)").await;
    assert_eq!(count(&client, ordinary).await, 0);
    let held = "SELECT count(*) FROM outbox.payment_outbox_pending WHERE claimed_by = 'x' AND batch IS NULL";
    assert_eq!(count(&client, held).await, 40 - i64::try_from(rows.len()).unwrap());
}

#[tokio::test]
async fn workers_share_the_shards_evenly() {
    let database = Database::new().await;
    let client = database.connect().await;
    policies(&client, "exactly_once", 16).await.unwrap();
    for worker in ["w1", "w2", "w3"] {
        run(&client, &format!("SELECT outbox.note_worker('{worker}', '{{eos}}')")).await;
        // Everybody asks in turn, and gives up what it is told to.
        for _ in 0..4 {
            for asker in ["w1", "w2", "w3"] {
                let ask = format!(
                    "SELECT outbox.release_outbox_shard('{asker}', 'eos', s.shard, s.epoch) \
                     FROM outbox.lease_outbox_shards('{asker}', 'eos', 60) AS s WHERE s.leave"
                );
                let known = format!(
                    "SELECT count(*) FROM outbox.payment_outbox_workers WHERE worker_id = '{asker}'"
                );
                if count(&client, &known).await > 0 {
                    run(&client, &ask).await;
                }
            }
        }
    }
    let shares = "SELECT array_agg(n ORDER BY n)::text FROM (SELECT count(*) AS n FROM outbox.payment_outbox_shards GROUP BY owner) AS o";
    let shares: String = client.query_one(shares, &[]).await.unwrap().get(0);
    assert_eq!(shares, "{5,5,6}");
}
