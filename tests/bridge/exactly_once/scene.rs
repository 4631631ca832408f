//! A database, a topic, a register, and what has to be true of them in the end.

use std::collections::{BTreeMap, HashMap};

use crate::process::Setup;
use crate::rows::{all_done, check_order, header};
use crate::support::{Database, Record, Topic};

pub(crate) struct Scene {
    pub(crate) database: Database,
    pub(crate) topic: Topic,
    pub(crate) register: Topic,
    pub(crate) setup: Setup,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with_shards(4, "").await
    }

    /// With so many shards, and more settings of the rail.
    pub(crate) async fn with_shards(shards: i32, more: &str) -> Self {
        let brokers = std::env::var("KAFKA_BROKERS").expect("KAFKA_BROKERS is not set");
        Self::of(Database::new().await, &brokers, shards, more).await
    }

    /// With four shards, on servers of a test's own.
    pub(crate) async fn on(database: Database, brokers: &str) -> Self {
        Self::of(database, brokers, 4, "").await
    }

    async fn of(database: Database, brokers: &str, shards: i32, more: &str) -> Self {
        let (mut topic, register) = (Topic::unmade_on(brokers), Topic::unmade_on(brokers));
        topic.make(3).await;
        let policies = format!(
            "SELECT outbox.set_rail_policies('{{\"kafka\": {{\"delivery\": \"exactly_once\", \"shards\": {shards}}}}}', 'test', 'test')"
        );
        database.connect().await.batch_execute(&policies).await.unwrap();
        let setup = Setup::kafka(&database, &topic).await.env("KAFKA_BROKERS", brokers).and(&format!(
            "delivery = \"exactly_once\"\nshards = {shards}\nregister_topic = \"{}\"\ntransactional_id_prefix = \"{}\"\n{more}\n[relay]\nlease_seconds = 10\nbatch_size = 100\n",
            register.name(),
            topic.name()
        ));
        Self { database, topic, register, setup }
    }

    /// Waits until nothing is pending; then every row is in the topic once, in order, and where the ledger
    /// says it is.
    pub(crate) async fn is_exact(&self, rows: usize) {
        all_done(&self.database).await;
        let records = self.topic.consume_committed().await;
        self.agrees_with(&records, rows).await;
    }

    /// The same for a database that has lost rows: all that it still knows of.
    pub(crate) async fn is_exact_for_survivors(&self) {
        all_done(&self.database).await;
        let ledger = self.ledger().await;
        let mut records = self.topic.consume_committed().await;
        records.retain(|record| ledger.contains_key(&header(record, "ce_id")));
        self.agrees_with(&records, self.enqueued().await).await;
    }

    async fn agrees_with(&self, records: &[Record], rows: usize) {
        assert_eq!(check_order(records), 0, "duplicates");
        assert_eq!(records.len(), rows, "missing");
        let read: BTreeMap<String, String> = records
            .iter()
            .map(|record| {
                let at = format!("{}/{}@{}", self.topic.name(), record.partition, record.offset);
                (header(record, "ce_id"), at)
            })
            .collect();
        assert_eq!(read, self.ledger().await, "the ledger and the topic");
    }

    /// How many rows the database has ever taken, as far as it knows.
    pub(crate) async fn enqueued(&self) -> usize {
        let client = self.database.connect().await;
        let count = "SELECT count(*) FROM outbox.payment_outbox_keys";
        usize::try_from(client.query_one(count, &[]).await.unwrap().get::<_, i64>(0)).unwrap()
    }

    /// Where the ledger says that each delivered row is.
    pub(crate) async fn ledger(&self) -> BTreeMap<String, String> {
        const DISPATCHED: &str = "SELECT outbox_id::text, rail_reference \
            FROM outbox.payment_outbox_attempts WHERE state = 'DISPATCHED'";
        let client = self.database.connect().await;
        let rows = client.query(DISPATCHED, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// As if whoever owns shards now had been dead for the length of a lease.
    pub(crate) async fn let_the_leases_pass(&self) {
        // And a second more: who has its share already leaves a shard to the others for a moment.
        // Locked in the order in which workers lock them, lest one waits for the other.
        const PASS: &str = "BEGIN; \
            SELECT FROM outbox.payment_outbox_shards ORDER BY rail_type, shard FOR NO KEY UPDATE; \
            UPDATE outbox.payment_outbox_shards SET lease_expires_at = clock_timestamp() - interval '1 second'; \
            COMMIT";
        self.database.connect().await.batch_execute(PASS).await.unwrap();
    }

    /// Everything is delivered, and then its database is one that has not heard of it. Returns for how many topics
    /// that one knows where to begin.
    pub(crate) async fn deliver_and_forget(&mut self) -> i64 {
        let before = self.database.copy().await;
        let worker = self.setup.run();
        all_done(&self.database).await;
        drop(worker);
        self.setup = self.setup.clone().on(&before).await;
        self.database = before;
        self.let_the_leases_pass().await;
        let known = "SELECT count(*) FROM outbox.payment_outbox_shards AS s CROSS JOIN LATERAL jsonb_object_keys(s.offsets)";
        self.database.connect().await.query_one(known, &[]).await.unwrap().get(0)
    }

    /// How many rows were recovered, by evidence.
    pub(crate) async fn recovered(&self) -> HashMap<String, i64> {
        const RECOVERED: &str = "SELECT rail_code, count(*) FROM outbox.payment_outbox_attempts \
            WHERE rail_code LIKE 'RECOVERED%' GROUP BY 1";
        let client = self.database.connect().await;
        let rows = client.query(RECOVERED, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }
}
