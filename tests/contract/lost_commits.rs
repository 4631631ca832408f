//! Shards of a database that has lost its last commits, and calls that arrive when it has moved on.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::calls::code;
use super::shards::{claim, complete, enqueue, owned, take_over};
use super::steps::{count, run};
use super::support::Database;

/// A batch of so many rows of each lane, claimed by an owner who knows of this batch before it.
async fn claim_after(client: &Client, batch: i64, lane_rows: i32) -> Vec<(Uuid, Uuid)> {
    let call = "SELECT outbox_id, lease_token FROM outbox.claim_outbox_batch(1000, 'w1', 60, '{eos}', NULL, $2, '{0}', '{1}', '{}', ARRAY[$1::int8])";
    let rows = client.query(call, &[&batch, &lane_rows]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The pending rows of shard 0, from this place in their lanes to before that one.
async fn rows(client: &Client, from: i64, to: i64) -> Vec<Uuid> {
    let call = "SELECT p.outbox_id FROM outbox.payment_outbox_pending AS p \
        WHERE outbox.shard_of(p.participant_id, 'eos') = 0 AND p.sequence_id >= $1 AND p.sequence_id < $2 ORDER BY p.outbox_id";
    client.query(call, &[&from, &to]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// What an owner has found of shard 0, by the batch in whose number it is in the topics.
#[derive(Default)]
struct Seen {
    /// The batch and the offsets at which it began to read.
    stand: (i64, &'static str),
    found: Vec<(i64, Vec<Uuid>)>,
    /// Whether the register has these batches too.
    registered: bool,
}

const PLACES: &str = r#"{"t": {"0": 5}}"#;

async fn reconcile(
    client: &Client,
    worker: &str,
    epoch: i64,
    seen: &Seen,
) -> Result<(i32, i32, Option<String>), Error> {
    let in_register = if seen.registered { seen.found.as_slice() } else { &[] };
    let (batches, sizes): (Vec<i64>, Vec<i32>) =
        in_register.iter().map(|(batch, ids)| (*batch, i32::try_from(ids.len()).unwrap())).unzip();
    let found = seen.found.iter().flat_map(|(batch, ids)| ids.iter().map(|id| (*id, *batch)));
    let (ids, of): (Vec<Uuid>, Vec<i64>) = found.unzip();
    let call = "SELECT recovered, requeued, halted_reason FROM outbox.reconcile_outbox_shard($1, 'eos', 0::smallint, $2, $3, $4::text::jsonb, \
        $5, $6, array_fill('t/0@7'::text, ARRAY[cardinality($5::uuid[])]), $7, $8, (SELECT max(b) FROM unnest($7::int8[]) AS b), '{\"t\": {\"0\": 9}}', 'me')";
    let (batch, offsets) = seen.stand;
    let row = client
        .query_one(call, &[&worker, &epoch, &batch, &offsets, &ids, &of, &batches, &sizes])
        .await?;
    Ok((row.get(0), row.get(1), row.get(2)))
}

#[tokio::test]
async fn whoever_knows_of_another_batch_than_the_database_claims_nothing() {
    let database = Database::new().await;
    let client = owned(&database).await;
    assert_eq!(claim_after(&client, 1, 100).await, [], "the database has forgotten batch 1");
    let first = claim_after(&client, 0, 100).await;
    assert!(!first.is_empty());
    complete(&client, "w1", &first).await;
    enqueue(&client, 40).await;
    assert_eq!(claim_after(&client, 0, 100).await, [], "a claim that was held up on its way");
    let told = "SELECT batch FROM outbox.lease_outbox_shards('w1', 'eos', 60) WHERE shard = 0";
    assert_eq!(count(&client, told).await, 1, "by which it notices");
    assert!(!claim_after(&client, 1, 100).await.is_empty());
    let unsaid = "SELECT outbox.claim_outbox_batch(1, 'w1', 60, '{eos}', NULL, NULL, '{1}', '{1}')";
    assert_eq!(code(&client.batch_execute(unsaid).await.unwrap_err()), "P7116");
}

#[tokio::test]
async fn without_the_look_at_the_batch_it_would_get_the_same_rows_again() {
    let database = Database::new().await;
    database.take_out("claimable_shards", "AND s.batch = a.batch", "").await;
    let client = owned(&database).await;
    assert!(!claim_after(&client, 1, 100).await.is_empty());
}

/// Batch 1, with the first two rows of each lane, is under way; batch 2, with the next two, was claimed and
/// committed too, but the database does not know. How many rows are recovered, and left.
async fn lost_behind_a_batch(database: &Database) -> (Result<i32, String>, usize) {
    let client = owned(database).await;
    let under_way = claim_after(&client, 0, 2).await;
    let found = vec![(1, rows(&client, 1, 3).await), (2, rows(&client, 3, 5).await)];
    assert_eq!(under_way.len(), found[0].1.len());
    take_over(&client).await;
    let seen = Seen { stand: (1, PLACES), found, registered: true };
    let recovered = match reconcile(&client, "w2", 2, &seen).await {
        Ok((recovered, requeued, halted)) => {
            assert_eq!((requeued, halted), (0, None));
            let batch = "SELECT batch FROM outbox.payment_outbox_shards WHERE shard = 0";
            assert_eq!(count(&client, batch).await, 2, "the number is not used again");
            Ok(recovered)
        }
        Err(error) => Err(code(&error).to_owned()),
    };
    (recovered, rows(&client, 1, 5).await.len())
}

#[tokio::test]
async fn lost_rows_behind_rows_of_the_batch_under_way_are_delivered_too() {
    let database = Database::new().await;
    let (recovered, left) = lost_behind_a_batch(&database).await;
    assert!(recovered.unwrap() > 0);
    assert_eq!(left, 0);
}

#[tokio::test]
async fn what_is_found_and_stays_pending_is_a_contradiction() {
    let database = Database::new().await;
    let take = "v_turns := outbox.take_lost_rows(p_worker_id, p_rail_type, p_shard, p_epoch, v_shard.batch, p_found_ids);";
    database.take_out("reconcile_outbox_shard", take, "v_turns := '{}';").await;
    let (recovered, left) = lost_behind_a_batch(&database).await;
    assert_eq!(recovered, Err("P7017".to_owned()));
    assert!(left > 0, "nothing is decided");
}

/// More than one call records, most of it in one lane: in batches of a thousand that the register has.
#[tokio::test]
async fn a_shard_whose_database_has_lost_many_thousand_rows_becomes_ready() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let many = "SELECT outbox.enqueue_payment_outbox_batch((SELECT jsonb_agg(jsonb_build_object('instruction_id', 'i' || g, \
        'participant_id', l.participant_id, 'idempotency_key', 'k', 'rail_type', 'eos', 'payload', '{}'::jsonb)) FROM generate_series(1, 12000) AS g)) \
        FROM outbox.payment_outbox_lanes AS l WHERE l.shard = 0 ORDER BY l.participant_id LIMIT 1";
    run(&client, many).await;
    let lost = rows(&client, 1, i64::MAX).await;
    assert!(lost.len() > 12_000);
    let found = (1..).zip(lost.chunks(1000).map(<[Uuid]>::to_vec)).collect();
    // Where each row was compared with each it took hours.
    run(&client, "SET statement_timeout = '30 s'").await;
    let seen = Seen { stand: (0, PLACES), found, registered: true };
    let (recovered, _, halted) = reconcile(&client, "w1", 1, &seen).await.unwrap();
    assert_eq!((usize::try_from(recovered).unwrap(), halted), (lost.len(), None));
    assert_eq!(rows(&client, 1, i64::MAX).await, [] as [Uuid; 0]);
    let recorded = "SELECT count(DISTINCT outbox_id) FROM outbox.payment_outbox_attempts WHERE rail_code = 'RECOVERED_FROM_REGISTER'";
    assert_eq!(count(&client, recorded).await, i64::from(recovered));
    enqueue(&client, 40).await;
    assert!(!claim(&client, "w1", 0, 1).await.is_empty());
}

#[tokio::test]
async fn one_row_that_is_missing_before_the_last_of_its_lane_is_a_contradiction() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let (first, behind) = (rows(&client, 1, 2).await, rows(&client, 2, 4).await);
    // Of one lane the first row is not there; of the others the first three are.
    let found = vec![(1, [&first[1..], behind.as_slice()].concat())];
    let seen = Seen { stand: (0, PLACES), found, registered: true };
    let (recovered, _, halted) = reconcile(&client, "w1", 1, &seen).await.unwrap();
    let missing = format!("row {}, which comes before it in its lane, is not", first[0]);
    assert!(halted.unwrap().contains(&missing));
    assert_eq!(recovered, 0);
}

/// A row that is leased the ordinary way cannot have been sent in a batch, and yet is found.
#[tokio::test]
async fn what_is_found_although_somebody_else_holds_it_is_a_contradiction() {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, 40).await;
    run(&client, "SELECT outbox.claim_outbox_batch(1000, 'x', 600)").await;
    let client = owned(&database).await;
    let found = vec![(1, rows(&client, 1, 2).await)];
    let seen = Seen { stand: (0, PLACES), found, registered: false };
    let refused = reconcile(&client, "w1", 1, &seen).await.unwrap_err();
    assert_eq!(code(&refused), "P7017");
}

/// On a rail without order the rows before a lost one may not be there: they are still to be delivered.
#[tokio::test]
async fn rows_before_a_lost_one_are_still_delivered_where_there_is_no_order() {
    let database = Database::new().await;
    let client = owned(&database).await;
    run(&client, "SELECT outbox.set_rail_policies('{\"eos\": {\"delivery\": \"exactly_once\", \"shards\": 2, \"ordering\": \"none\"}}', 'ops', 'why')").await;
    let (first, last) = (rows(&client, 1, 4).await, rows(&client, 4, 5).await);
    let seen = Seen { stand: (0, PLACES), found: vec![(1, last.clone())], registered: true };
    let (recovered, _, halted) = reconcile(&client, "w1", 1, &seen).await.unwrap();
    assert_eq!((usize::try_from(recovered).unwrap(), halted), (last.len(), None));
    let mut next: Vec<Uuid> =
        claim(&client, "w1", 0, 1).await.into_iter().map(|(id, _)| id).collect();
    next.sort();
    assert_eq!(next, first);
}

/// A call that was held up arrives when the next batch is under way: why it is refused, and how many rows
/// of that batch can be recorded nevertheless.
async fn held_up(database: &Database, stand: (i64, &'static str)) -> (Option<String>, bool) {
    let client = owned(database).await;
    let under_way = claim(&client, "w1", 0, 1).await;
    let seen = Seen { stand, ..Seen::default() };
    let refused = reconcile(&client, "w1", 1, &seen).await.err();
    let all = i64::try_from(under_way.len()).unwrap();
    let kept = complete(&client, "w1", &under_way).await == all;
    (refused.map(|error| code(&error).to_owned()), kept)
}

#[tokio::test]
async fn evidence_about_another_stand_of_the_shard_decides_nothing() {
    for stand in [(0, PLACES), (1, "{}"), (2, PLACES)] {
        let database = Database::new().await;
        let refused = (Some("P7019".to_owned()), true);
        assert_eq!(held_up(&database, stand).await, refused, "{stand:?}");
    }
}

#[tokio::test]
async fn without_the_look_at_the_stand_it_would_take_the_next_batch_back() {
    let database = Database::new().await;
    let guard = "v_shard.batch IS DISTINCT FROM p_stand_batch OR v_shard.offsets IS DISTINCT FROM p_stand_offsets";
    database.take_out("reconcile_outbox_shard", guard, "false").await;
    assert_eq!(held_up(&database, (0, PLACES)).await, (None, false));
}
