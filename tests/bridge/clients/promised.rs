//! What docs/consume.md promises of the rows of a scene. Only what the database chose is taken from
//! the ledger: ids, times and the place in the topic.

use std::collections::BTreeMap;

use super::programs::Printed;
use super::scene::{LATER, REPLACED, ROWS, Row, Scene};
use crate::support::Topic;

/// The record of every row that was delivered.
pub(super) async fn records(scene: &Scene) -> Vec<Printed> {
    let mut records = Vec::new();
    for row in ROWS.iter().chain([&LATER]).filter(|row| row.refused.is_none()) {
        let Some(done) = Done::find(scene, row, row.rail).await else { continue };
        let mut headers = own_headers(row);
        headers.extend(our_headers(row, &done));
        if row.rail == "instant" {
            headers.extend(text([
                ("ce_source", "bank"),
                ("id", &done.outbox_id),
                ("eventType", "payment.instant"),
            ]));
        }
        records.push(done.record(row, &scene.topic, headers));
    }
    records
}

/// The dead letter of every row that was refused.
pub(super) async fn dead_letters(scene: &Scene) -> Vec<Printed> {
    let mut letters = Vec::new();
    for row in ROWS.iter().filter(|row| row.refused.is_some()) {
        let done = Done::find(scene, row, "dlq").await.expect("its dead letter is delivered");
        let mut headers = own_headers(row);
        headers.extend(our_headers(row, &done));
        headers.extend(failure(scene, row).await);
        headers.extend(text([("ce_type", "payment.dlq")]));
        letters.push(done.record(row, &scene.dlq, headers));
    }
    letters
}

/// What the ledger says of a row, or of a dead letter, that was delivered.
struct Done {
    outbox_id: String,
    rail_reference: String,
    /// RFC 3339 without zeros at its end.
    enqueued_at: String,
}

impl Done {
    async fn find(scene: &Scene, row: &Row, rail: &str) -> Option<Self> {
        const QUESTION: &str = "SELECT outbox_id::text, rail_reference, regexp_replace( \
              to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), '\\.?0+$', '') || 'Z' \
            FROM outbox.payment_outbox_attempts \
            WHERE instruction_id = $1 AND rail_type = $2 AND state = 'DISPATCHED'";
        let client = scene.database.connect().await;
        let found = client.query_opt(QUESTION, &[&row.instruction, &rail]).await.unwrap()?;
        let (outbox_id, rail_reference) = (found.get(0), found.get(1));
        Some(Self { outbox_id, rail_reference, enqueued_at: found.get(2) })
    }

    /// At the place that the ledger names: topic/partition@offset.
    fn record(&self, row: &Row, topic: &Topic, headers: BTreeMap<String, String>) -> Printed {
        let place = self.rail_reference.strip_prefix(topic.name()).expect("it is in the topic");
        let (partition, offset) = place[1..].split_once('@').expect("a partition and an offset");
        let (partition, offset) = (partition.parse().unwrap(), offset.parse().unwrap());
        assert_eq!(self.rail_reference, format!("{}/{partition}@{offset}", topic.name()));
        let (key, value) = (row.participant.to_owned(), row.payload.to_owned());
        Printed { key, value, headers, partition, offset }
    }
}

fn own_headers(row: &Row) -> BTreeMap<String, String> {
    let own = row.headers.iter().filter(|(name, _)| !REPLACED.contains(name));
    own.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn our_headers(row: &Row, done: &Done) -> BTreeMap<String, String> {
    let mut headers = text([
        ("ce_id", &done.outbox_id),
        ("ce_specversion", "1.0"),
        ("ce_type", &format!("payment.{}", row.rail)),
        ("ce_source", "trestle"),
        ("ce_time", &done.enqueued_at),
        ("ce_subject", row.participant),
        ("content-type", "application/json"),
        ("sequence_id", &number(row).to_string()),
        ("instruction_id", row.instruction),
        ("idempotency_key", "key"),
        ("attempt_no", "1"),
    ]);
    headers.extend(row.tenant.map(|tenant| ("tenant_id".to_owned(), tenant.to_owned())));
    headers
}

/// 1, 2, 3 … for each participant, over all rails, also for what is refused later.
fn number(row: &Row) -> usize {
    let of_participant = ROWS.iter().chain([&LATER]).filter(|it| it.participant == row.participant);
    1 + of_participant.take_while(|it| it.instruction != row.instruction).count()
}

async fn failure(scene: &Scene, row: &Row) -> BTreeMap<String, String> {
    const QUESTION: &str = "SELECT outbox_id::text, error_code, error_message, to_jsonb(completed_at) #>> '{}' \
        FROM outbox.payment_outbox_attempts WHERE instruction_id = $1 AND state = 'FAILED'";
    let client = scene.database.connect().await;
    let failed = client.query_one(QUESTION, &[&row.instruction]).await.unwrap();
    assert_eq!(failed.get::<_, Option<&str>>(1), row.refused);
    text([
        ("dlq_outbox_id", failed.get(0)),
        ("dlq_rail_type", row.rail),
        ("dlq_error_code", failed.get(1)),
        ("dlq_reason", failed.get(2)),
        ("dlq_attempts", "1"),
        ("dlq_first_failed_at", failed.get(3)),
        ("dlq_last_failed_at", failed.get(3)),
    ])
}

fn text<const N: usize>(headers: [(&str, &str); N]) -> BTreeMap<String, String> {
    headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
