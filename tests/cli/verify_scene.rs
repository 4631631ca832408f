//! A topic and a ledger that agree, until a test makes them differ.

use serde_json::Value;
use tempfile::TempDir;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::scene::{Run, assert_fits, claim, enqueue, run};
use crate::support::{Database, Record, Topic, trestle};

pub(crate) struct Scene {
    pub(crate) database: Database,
    pub(crate) client: Client,
    pub(crate) topic: Topic,
    folder: TempDir,
}

/// A row that was claimed.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) id: Uuid,
    pub(crate) sequence_id: i64,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with_partitions(1).await
    }

    pub(crate) async fn with_partitions(partitions: i32) -> Self {
        Self::of(Topic::with_partitions(partitions).await).await
    }

    pub(crate) async fn of(topic: Topic) -> Self {
        let database = Database::new().await;
        let client = database.connect().await;
        let scene = Self { database, client, topic, folder: tempfile::tempdir().unwrap() };
        scene.configure("");
        scene
    }

    /// Writes the configuration anew, with `more` at its end.
    pub(crate) fn configure(&self, more: &str) {
        let name = self.topic.name();
        let rail =
            format!("[rails.kafka]\nkind = \"kafka\"\ntopic = \"{name}\"\nschema = \"any\"\n");
        std::fs::write(self.file(), rail + more).unwrap();
    }

    pub(crate) fn file(&self) -> String {
        self.folder.path().join("trestle.toml").to_str().unwrap().to_owned()
    }

    /// Enqueues rows of these participants, and has the bridge deliver them.
    pub(crate) async fn deliver(&self, participants: &[&str]) {
        for participant in participants {
            let instruction = Uuid::new_v4().to_string();
            enqueue(&self.client, &instruction, participant, "kafka").await;
        }
        let url = self.database.url_as("symphony_executor").await;
        trestle(&url, &["--config", &self.file(), "drain"]).assert().success();
    }

    /// Enqueues and claims a row for each participant, and does nothing with it.
    pub(crate) async fn claimed(&self, participants: &[&str]) -> Vec<Row> {
        for participant in participants {
            let instruction = Uuid::new_v4().to_string();
            enqueue(&self.client, &instruction, participant, "kafka").await;
        }
        claim(&self.client).await;
        let rows = "SELECT outbox_id, sequence_id FROM claimed ORDER BY outbox_id";
        let rows = self.client.query(rows, &[]).await.unwrap();
        rows.iter().map(|row| Row { id: row.get(0), sequence_id: row.get(1) }).collect()
    }

    /// Records that a claimed row was delivered to this partition and offset of the topic.
    pub(crate) async fn record(&self, row: Row, place: &str) {
        let reference = format!("{}/{place}", self.topic.name());
        self.complete(row, "DISPATCHED", &reference).await;
    }

    pub(crate) async fn complete(&self, row: Row, state: &str, reference: &str) {
        const CALL: &str = "SELECT FROM claimed AS c, outbox.complete_outbox_attempt(c.outbox_id, c.lease_token, \
            'worker-1', $2::text::outbox.outbox_attempt_state, p_rail_reference => $3) WHERE c.outbox_id = $1";
        self.client.execute(CALL, &[&row.id, &state, &reference]).await.unwrap();
    }

    /// Writes a record of this row, as the bridge would.
    pub(crate) async fn write(&self, partition: i32, participant: &str, row: Row) {
        self.topic.repeat(&[record(partition, participant, row)]).await;
    }

    /// Runs the command as an auditor; it must end with `code`.
    pub(crate) async fn verify(&self, arguments: &[&str], code: i32) -> Run {
        let url = self.database.url_as("symphony_auditor").await;
        let file = self.file();
        let run = run(&url, &[&["--config", &file, "verify"], arguments].concat(), code);
        if !arguments.contains(&"--json") {
            assert_fits(&run.stdout.replace(self.topic.name(), "topic"));
        }
        assert!(!run.stdout.contains("s3cret"), "{}", run.stdout);
        run
    }

    /// What it says as JSON.
    pub(crate) async fn report(&self, arguments: &[&str], code: i32) -> Value {
        let run = self.verify(&[arguments, &["--json"]].concat(), code).await;
        let report: Value = serde_json::from_str(&run.stdout).expect("one JSON document");
        assert_eq!(report["version"], 1);
        assert_eq!(report["agrees"], code == 0, "{report}");
        report
    }
}

pub(crate) fn record(partition: i32, participant: &str, row: Row) -> Record {
    let header = |name: &str, value: String| (name.to_owned(), value.into_bytes());
    Record {
        key: Some(participant.as_bytes().to_vec()),
        value: b"{}".to_vec(),
        headers: vec![
            header("sequence_id", row.sequence_id.to_string()),
            header("attempt_no", "1".to_owned()),
            header("ce_id", row.id.to_string()),
            header("ce_type", "payment.kafka".to_owned()),
        ],
        partition,
        offset: 0,
    }
}
