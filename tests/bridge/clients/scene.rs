//! Rows of all kinds, delivered by a bridge.

use crate::process::{Bridge, Setup};
use crate::rows::all_done;
use crate::support::{Database, Topic};

pub(super) const TENANT: &str = "5a4f2c1e-6b7d-4c3a-9f10-2e8d7b6a5c4d";

/// What a producer enqueues. The payload is written as PostgreSQL prints it.
pub(super) struct Row {
    pub(super) instruction: &'static str,
    pub(super) participant: &'static str,
    pub(super) rail: &'static str,
    pub(super) payload: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) tenant: Option<&'static str>,
    /// Why it goes to the DLQ instead.
    pub(super) refused: Option<&'static str>,
}

const fn row(instruction: &'static str, participant: &'static str, rail: &'static str) -> Row {
    let payload = r#"{"amount": "10.00", "currency": "EUR"}"#;
    Row { instruction, participant, rail, payload, headers: &[], tenant: None, refused: None }
}

pub(super) const TRACE: [(&str, &str); 2] = [
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("tracestate", "vendor=1,other=2"),
];

/// In the order in which they are enqueued.
pub(super) const ROWS: [Row; 11] = [
    Row {
        payload: r#"{"amount": 12345678901234567890.10, "currency": "EUR"}"#,
        ..row("a-1", "alice", "kafka")
    },
    Row {
        payload: r#"{"n": [1.0, 100, -0.50], "amount": 0.30000000000000000001}"#,
        ..row("a-2", "alice", "instant")
    },
    row("a-3", "alice", "kafka"),
    row("a-4", "alice", "instant"),
    Row {
        payload: r#"{"memo": "日本 \"ö\" 🚂", "amount": "1.00", "currency": "JPY"}"#,
        headers: &[TRACE[0], TRACE[1], ("purpose", "Miete für Zoë, 家賃"), ("empty", "")],
        tenant: Some(TENANT),
        ..row("zahlung-ß", "Zoë 支払", "kafka")
    },
    Row {
        headers: &[
            ("ce_id", "forged"),
            ("Sequence_Id", "99"),
            ("CONTENT-TYPE", "x"),
            ("mine", "x"),
        ],
        ..row("b-1", "bob", "kafka")
    },
    row("c-1", "carol", "kafka"),
    Row {
        payload: r#"{"amount": "0.00", "currency": "EUR"}"#,
        refused: Some("PAYLOAD_INVALID"),
        ..row("c-2", "carol", "kafka")
    },
    row("c-3", "carol", "kafka"),
    Row {
        headers: &[("topic", "elsewhere")],
        refused: Some("TOPIC_NOT_ALLOWED"),
        ..row("c-4", "carol", "instant")
    },
    Row {
        payload: r#"{"amount": 0.00, "currency": "EUR"}"#,
        headers: &[TRACE[0], TRACE[1], ("mine", "kept ö"), ("dlq_reason", "forged")],
        tenant: Some(TENANT),
        refused: Some("PAYLOAD_INVALID"),
        ..row("d-1", "dora", "kafka")
    },
];

/// Producers' headers that a record does not carry, because ours have the name.
pub(super) const REPLACED: [&str; 4] = ["ce_id", "Sequence_Id", "CONTENT-TYPE", "dlq_reason"];

/// Delivered when [`Scene::deliver_one_more`] says so.
pub(super) const LATER: Row = row("a-5", "alice", "kafka");

pub(super) struct Scene {
    pub(super) database: Database,
    pub(super) topic: Topic,
    pub(super) dlq: Topic,
    _bridge: Bridge,
}

impl Scene {
    /// One rail is delivered before the other, to the same topic: alice's even numbers stand before
    /// her odd ones, and carol's fourth row fails before her second.
    pub(super) async fn delivered() -> Self {
        let (database, topic, dlq) =
            (Database::new().await, Topic::with_partitions(3).await, Topic::new().await);
        for row in &ROWS {
            enqueue(&database, row).await;
        }
        let setup = setup(&database, &topic, &dlq).await;
        let mut first = setup.start(&["drain", "--rail", "instant"]);
        assert!(first.ended().await.success(), "{}", first.log());
        let bridge = setup.run();
        all_done(&database).await;
        Self { database, topic, dlq, _bridge: bridge }
    }

    pub(super) async fn deliver_one_more(&self) {
        enqueue(&self.database, &LATER).await;
        all_done(&self.database).await;
    }
}

async fn setup(database: &Database, topic: &Topic, dlq: &Topic) -> Setup {
    let (topic, dlq) = (topic.name(), dlq.name());
    Setup::new(database).await.and(&format!(
        "[rails.kafka]\nkind = \"kafka\"\ntopic = \"{topic}\"\n\
         [rails.instant]\nkind = \"kafka\"\ntopic = \"{topic}\"\nschema = \"any\"\nheaders = \"both\"\nsource = \"bank\"\n\
         [dlq]\nrail = \"kafka\"\ntopic = \"{dlq}\"\n"
    ))
}

async fn enqueue(database: &Database, row: &Row) {
    const CALL: &str = "SELECT outbox.enqueue_payment_outbox($1, $2, 'key', $3, $4::text::jsonb, \
        (SELECT jsonb_object_agg(name, value) FROM unnest($5::text[], $6::text[]) AS h (name, value)), $7::text::uuid)";
    let (names, values): (Vec<&str>, Vec<&str>) = row.headers.iter().copied().unzip();
    let client = database.connect_as("symphony_ingest").await;
    client
        .execute(
            CALL,
            &[
                &row.instruction,
                &row.participant,
                &row.rail,
                &row.payload,
                &names,
                &values,
                &row.tenant,
            ],
        )
        .await
        .unwrap();
}
