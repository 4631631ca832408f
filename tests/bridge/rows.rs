//! Rows that go in, and what the ledger and the topic say of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use super::process::PATIENCE;
use crate::support::{Database, Record, Topic};

/// `count` rows, spread evenly over `participants`, in one call.
pub(crate) async fn enqueue(client: &Client, rail: &str, participants: i64, count: i64) {
    const CALL: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((
        SELECT jsonb_agg(jsonb_build_object('instruction_id', gen_random_uuid(), 'participant_id', 'p' || g % $2::int8,
          'idempotency_key', 'key', 'rail_type', $1::text,
          'payload', jsonb_build_object('amount', '10.00', 'currency', 'EUR', 'destination', 'account', 'n', g)) ORDER BY g)
        FROM generate_series(1, $3::int8) AS g))";
    client.query_one(CALL, &[&rail, &participants, &count]).await.unwrap();
}

/// Waits until nothing is pending.
pub(crate) async fn all_done(database: &Database) {
    wait_for(database, "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending)").await;
}

/// Waits until the question is answered with yes. The database has no event for it, so it is asked
/// again until then.
pub(crate) async fn wait_for(database: &Database, question: &str) {
    let client = database.connect().await;
    let until = Instant::now() + PATIENCE;
    while !client.query_one(question, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < until, "never: {question}\n{}", states(&client).await);
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

async fn states(client: &Client) -> String {
    let rows = client
        .query(
            "SELECT state::text || ' ' || coalesce(error_code, '') || ' ' || coalesce(left(error_message, 200), ''), count(*) \
             FROM outbox.payment_outbox_attempts GROUP BY 1",
            &[],
        )
        .await
        .unwrap();
    rows.iter()
        .map(|row| format!("{}: {}\n", row.get::<_, String>(0), row.get::<_, i64>(1)))
        .collect()
}

/// How many attempts the ledger has in this state.
pub(crate) async fn count(database: &Database, state: &str) -> i64 {
    let client = database.connect().await;
    let count = "SELECT count(*) FROM outbox.payment_outbox_attempts WHERE state::text = $1";
    client.query_one(count, &[&state]).await.unwrap().get(0)
}

/// The sequence numbers of each participant as the consumer saw them.
pub(crate) fn lanes(records: &[Record]) -> HashMap<String, Vec<i64>> {
    let mut lanes: HashMap<String, Vec<i64>> = HashMap::new();
    for record in records {
        let key = String::from_utf8(record.key.clone().unwrap()).unwrap();
        let sequence = header(record, "sequence_id").parse().unwrap();
        lanes.entry(key).or_default().push(sequence);
    }
    lanes
}

pub(crate) fn header(record: &Record, name: &str) -> String {
    let found = record.headers.iter().find(|(key, _)| key == name);
    let (_, value) = found.unwrap_or_else(|| panic!("no header {name} in {:?}", record.headers));
    String::from_utf8(value.clone()).unwrap()
}

/// All `rows` are in the topic, in order, and there is no duplicate but of rows whose lease was lost
/// before their outcome could be written.
/// Returns how many duplicates there are.
pub(crate) async fn complete_and_in_order(
    database: &Database,
    topic: &Topic,
    rows: usize,
) -> usize {
    let duplicates = all_in_order(topic, rows).await;
    let lost = usize::try_from(count(database, "ZOMBIE_REQUEUE").await).unwrap();
    assert!(duplicates <= lost, "{duplicates} duplicates, but {lost} lost leases");
    assert_eq!(usize::try_from(count(database, "DISPATCHED").await).unwrap(), rows);
    assert_eq!(count(database, "FAILED").await, 0);
    duplicates
}

/// All `rows` are in the topic, in order; returns how many of its records are duplicates.
pub(crate) async fn all_in_order(topic: &Topic, rows: usize) -> usize {
    let records = topic.consume_all().await;
    let duplicates = check_order(&records);
    assert_eq!(records.len() - duplicates, rows, "{duplicates} duplicates");
    duplicates
}

/// All `rows` are in the topic, in order, and nothing else.
pub(crate) async fn each_once(topic: &Topic, rows: usize) {
    assert_eq!(all_in_order(topic, rows).await, 0, "no row twice");
}

/// First occurrences of each lane are 1, 2, 3 …; returns how many records were duplicates.
pub(crate) fn check_order(records: &[Record]) -> usize {
    check_lanes(lanes(records))
}

/// The same, of lanes wherever they arrived.
pub(crate) fn check_lanes(lanes: HashMap<String, Vec<i64>>) -> usize {
    let mut duplicates = 0;
    for (lane, sequence) in lanes {
        let mut next = 1;
        for number in sequence {
            if number == next {
                next += 1;
            } else {
                assert!(number < next, "lane {lane}: {number} came before {next}");
                duplicates += 1;
            }
        }
    }
    duplicates
}
