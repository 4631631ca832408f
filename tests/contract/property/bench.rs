//! A database on which cases run one after another: its clock is theirs.

use std::collections::HashMap;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

use super::snapshot::{LOOK_AWAY, LOOK_INTO_ARCHIVE, PREPARE, QUERY};
use super::steps::SESSIONS;
use crate::support::Database;

const POLICIES: &str = r#"SELECT outbox.set_rail_policies(
    '{"strict": {}, "halting": {"on_failed": "halt", "dlq": "ledger"}, "free": {"ordering": "none"}}', 'test', 'a case')"#;

/// No step is to wait for another transaction unless the model says so; then it is left out.
/// And none goes on for ever. A plan that is made for each call costs more here than what it does.
const SETTINGS: &str = "SET lock_timeout = '3s'; SET statement_timeout = '20s'; \
    SET plan_cache_mode = force_generic_plan";

/// Ids that go by the clock of the case, so that its rows get old with it; and days that are short
/// enough to see the end of several.
const AGEING: &str = "
    CREATE OR REPLACE FUNCTION outbox.uuidv7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
      SELECT encode(overlay(uuid_send(gen_random_uuid()) PLACING
        substring(int8send((EXTRACT(epoch FROM outbox.clock()) * 1000)::bigint), 3) || '\\x7000' FROM 1 FOR 8), 'hex')::uuid $$;
    UPDATE outbox.payment_outbox_settings SET hot_days = 1, drop_after_days = 8, partitions_ahead = 1;";

pub(super) struct Session {
    client: Client,
    statements: HashMap<&'static str, Statement>,
}

impl Session {
    /// The rows, or the SQLSTATE of the refusal with its message.
    pub(super) async fn query(
        &mut self,
        sql: &'static str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, (String, String)> {
        if !self.statements.contains_key(sql) {
            let statement = self.client.prepare(sql).await.expect("a statement of ours");
            self.statements.insert(sql, statement);
        }
        match self.client.query(&self.statements[sql], values).await {
            Ok(rows) => Ok(rows),
            Err(error) => {
                let refusal = error.as_db_error().expect("the server answers");
                // The server tells before it lets go of its locks: wait for its next answer.
                self.run("").await;
                Err((refusal.code().code().to_owned(), refusal.message().to_owned()))
            }
        }
    }

    pub(super) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.expect("a command of ours");
    }
}

pub(super) struct Bench {
    pub(super) sessions: Vec<Session>,
    pub(super) observer: Client,
    pub(super) snapshot: Statement,
    /// Milliseconds since the clock was stopped.
    pub(super) now: i64,
    /// Dropped last: it disconnects whoever is left.
    pub(super) database: Database,
}

impl Bench {
    pub(super) async fn new(ages: bool) -> Self {
        let database = Database::new().await;
        database.control_clock().await;
        let observer = database.connect().await;
        observer.batch_execute(PREPARE).await.expect("the clock can be stopped");
        observer.batch_execute(POLICIES).await.expect("rails of ours");
        if ages {
            observer.batch_execute(AGEING).await.expect("ids of ours");
        }
        let snapshot = observer.prepare(QUERY).await.expect("a query of ours");
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            let client = database.connect().await;
            client.batch_execute(SETTINGS).await.expect("a setting");
            sessions.push(Session { client, statements: HashMap::new() });
        }
        Self { sessions, observer, snapshot, now: 0, database }
    }

    pub(super) async fn advance(&mut self, ms: i64) {
        const ADVANCE: &str =
            "UPDATE test.clock SET ahead = ahead + $1::int8 * interval '1 millisecond'";
        self.observer.execute(ADVANCE, &[&ms]).await.expect("a clock of ours");
        self.now += ms;
    }

    pub(super) async fn look_away(&self) {
        self.observer.batch_execute(LOOK_AWAY).await.expect("a view of ours");
    }

    pub(super) async fn look_into_archive(&self) {
        self.observer.batch_execute(LOOK_INTO_ARCHIVE).await.expect("a view of ours");
    }
}
