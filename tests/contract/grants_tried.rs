//! The rights on tables and views, tried for real by users who log in.

use tokio_postgres::Client;

use crate::calls::code;
use crate::support::{Database, User};

/// A statement for each right that a reader or a writer needs, and that touches no row.
const STATEMENTS: &str = "SELECT c.relname::text, c.relkind::text, ARRAY[
        format('SELECT FROM outbox.%I LIMIT 1', c.relname),
        format('INSERT INTO outbox.%I DEFAULT VALUES', c.relname),
        format('UPDATE outbox.%I SET %I = DEFAULT WHERE false', c.relname, a.attname),
        format('DELETE FROM outbox.%I WHERE false', c.relname),
        format('TRUNCATE outbox.%I', c.relname)]
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = 1
    WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'p', 'v') ORDER BY 1";

const VIEWS: &[&str] = &["outbox_operational_status", "supervisor_outbox_status"];
const WATCHED: &[&str] = &["outbox_failure_status", "outbox_worker_status"];
const LOG: &[&str] =
    &["payment_outbox_attempts", "payment_outbox_events", "payment_outbox_pending"];

struct Attempt {
    relation: String,
    is_view: bool,
    statements: Vec<String>,
}

async fn attempts(client: &Client) -> Vec<Attempt> {
    let rows = client.query(STATEMENTS, &[]).await.unwrap();
    let attempt = |row: &tokio_postgres::Row| Attempt {
        relation: row.get(0),
        is_view: row.get::<_, String>(1) == "v",
        statements: row.get(2),
    };
    rows.iter().map(attempt).collect()
}

/// The relations that `client` could read; every other statement must be refused for want of a right.
async fn readable(client: &Client, attempts: &[Attempt]) -> Vec<String> {
    let mut readable = Vec::new();
    for attempt in attempts {
        for (n, statement) in attempt.statements.iter().enumerate() {
            let told =
                client.batch_execute(statement).await.map_err(|error| code(&error).to_owned());
            match told {
                Ok(()) if n == 0 => readable.push(attempt.relation.clone()),
                // These views join and count, so that PostgreSQL finds them unfit before it looks at rights.
                Err(sqlstate) if attempt.is_view && n > 0 => {
                    assert!(
                        ["42501", "55000", "42809"].contains(&sqlstate.as_str()),
                        "{statement}: {sqlstate}"
                    );
                }
                told => assert_eq!(told, Err("42501".to_owned()), "{statement}"),
            }
        }
    }
    readable
}

fn of(parts: &[&[&str]]) -> Vec<String> {
    parts.iter().flat_map(|part| part.iter().map(|name| (*name).to_owned())).collect()
}

#[tokio::test]
async fn users_read_what_their_group_may_and_write_nothing() {
    let database = Database::new().await;
    let attempts = attempts(&database.connect().await).await;
    let everything = attempts.iter().map(|attempt| attempt.relation.clone()).collect();
    let mut log_and_views = of(&[VIEWS, WATCHED, LOG]);
    log_and_views.sort_unstable();
    for (role, expected) in [
        ("symphony_ingest", Vec::new()),
        ("symphony_executor", of(&[VIEWS])),
        ("symphony_operator", everything),
        ("symphony_readonly", log_and_views.clone()),
        ("symphony_auditor", log_and_views),
    ] {
        let client = database.connect_as(role).await;
        let mut readable = readable(&client, &attempts).await;
        readable.sort_unstable();
        assert_eq!(readable, expected, "{role}");
    }
}

#[tokio::test]
async fn a_user_without_a_group_reads_and_writes_nothing() {
    let stranger = User::new().await;
    let database = Database::new().await;
    let client = database.connect().await;
    let attempts = attempts(&client).await;
    client.batch_execute(&format!("SET ROLE {}", stranger.name)).await.unwrap();
    assert_eq!(readable(&client, &attempts).await, [""; 0]);
}

#[tokio::test]
async fn a_table_that_may_be_read_is_found_readable() {
    let database = Database::new().await;
    let client = database.connect().await;
    let grant = "GRANT SELECT ON outbox.payment_outbox_keys TO symphony_ingest";
    client.batch_execute(grant).await.unwrap();
    let attempts = attempts(&client).await;
    let ingest = database.connect_as("symphony_ingest").await;
    assert_eq!(readable(&ingest, &attempts).await, ["payment_outbox_keys"]);
}

#[tokio::test]
#[should_panic(expected = "DELETE FROM outbox.payment_outbox_keys")]
async fn a_table_that_may_be_written_is_found_writable() {
    let database = Database::new().await;
    let client = database.connect().await;
    let grant = "GRANT DELETE ON outbox.payment_outbox_keys TO symphony_ingest";
    client.batch_execute(grant).await.unwrap();
    let attempts = attempts(&client).await;
    readable(&database.connect_as("symphony_ingest").await, &attempts).await;
}
