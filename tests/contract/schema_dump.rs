//! The resulting schema is committed as text, so that a review sees every change of it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tokio_postgres::Client;

use crate::support::Database;

const UPDATE: &str = "UPDATE_SCHEMA_DUMP";

const HEAD: &str = "The schema that the files beside this one make. Written by the tests, not by hand:\n\
    UPDATE_SCHEMA_DUMP=1 make test\n";

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/schema.txt")
}

async fn dump(client: &Client) -> String {
    let (mut dump, mut last) = (HEAD.to_owned(), String::new());
    for row in client.query(include_str!("schema_dump.sql"), &[]).await.unwrap() {
        let (title, fact): (String, String) = (row.get(0), row.get(1));
        if title != last {
            writeln!(dump, "\n{title}").unwrap();
        }
        writeln!(dump, "  {}", fact.replace('\n', "\n    ")).unwrap();
        last = title;
    }
    dump
}

/// The lines that only one of two dumps has, each under the title of its object.
fn difference(committed: &str, actual: &str) -> Vec<String> {
    let (committed, actual) = (titled(committed), titled(actual));
    let gone =
        committed.iter().filter(|line| !actual.contains(line)).map(|line| format!("- {line}"));
    let come =
        actual.iter().filter(|line| !committed.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

fn titled(dump: &str) -> Vec<String> {
    let mut title = "";
    let mut lines = Vec::new();
    for line in dump.lines().filter(|line| !line.is_empty()) {
        if !line.starts_with(' ') {
            title = line;
        }
        lines.push(format!("{title}: {}", line.trim()));
    }
    lines
}

#[tokio::test]
async fn the_committed_schema_is_the_one_that_migrations_make() {
    let database = Database::new().await;
    let actual = dump(&database.connect().await).await;
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(file(), &actual).expect("sql/schema.txt can be written");
    }
    let committed = std::fs::read_to_string(file()).unwrap_or_default();
    assert!(
        committed == actual,
        "sql/schema.txt is not the schema that the migrations make:\n{}\n\
         If this is what you want, write it down with {UPDATE}=1 and commit it.",
        difference(&committed, &actual).join("\n")
    );
}

#[tokio::test]
async fn each_kind_of_change_is_seen_in_the_schema() {
    const CHANGES: [(&str, &str); 12] = [
        (
            "ALTER TABLE outbox.payment_outbox_turns ADD odd text",
            "+ table payment_outbox_turns: column odd",
        ),
        (
            "ALTER TABLE outbox.payment_outbox_turns ALTER due_at DROP NOT NULL",
            "+ table payment_outbox_turns: column due_at",
        ),
        (
            "ALTER TABLE outbox.payment_outbox_turns ADD CHECK (turn_id > 0)",
            "+ table payment_outbox_turns: constraint",
        ),
        (
            "DROP INDEX outbox.payment_outbox_turns_lane",
            "- table payment_outbox_turns: index CREATE INDEX payment_outbox_turns_lane",
        ),
        (
            "DROP TRIGGER append_only ON outbox.payment_outbox_events_default",
            "- table payment_outbox_events_default: trigger (always)",
        ),
        (
            "ALTER TABLE outbox.payment_outbox_events ENABLE TRIGGER append_only",
            "+ table payment_outbox_events: trigger CREATE",
        ),
        (
            "ALTER FUNCTION outbox.due_rails() SET work_mem = '1MB'",
            "+ function due_rails(): set work_mem=1MB",
        ),
        (
            "GRANT EXECUTE ON FUNCTION outbox.due_rails() TO PUBLIC",
            "+ function due_rails(): grant EXECUTE to PUBLIC",
        ),
        (
            "GRANT INSERT ON outbox.payment_outbox_keys TO symphony_ingest",
            "+ table payment_outbox_keys: grant INSERT to symphony_ingest",
        ),
        (
            "COMMENT ON VIEW outbox.supervisor_outbox_status IS 'odd'",
            "+ view supervisor_outbox_status: comment odd",
        ),
        (
            "ALTER TYPE outbox.outbox_attempt_state ADD VALUE 'ODD'",
            "+ type outbox_attempt_state: label ODD",
        ),
        (
            "CREATE OR REPLACE FUNCTION outbox.wake_up_key() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT 1'",
            "+ function wake_up_key(): body sha256",
        ),
    ];
    let database = Database::new().await;
    let client = database.connect().await;
    let mut before = dump(&client).await;
    for (change, seen) in CHANGES {
        client.batch_execute(change).await.unwrap();
        let after = dump(&client).await;
        let difference = difference(&before, &after);
        assert!(difference.iter().any(|line| line.starts_with(seen)), "{change}: {difference:#?}");
        before = after;
    }
}

#[tokio::test]
async fn the_schema_does_not_depend_on_the_day() {
    let database = Database::new().await;
    let client = database.connect().await;
    let before = dump(&client).await;
    let make =
        "SELECT outbox.create_partition('payment_outbox_attempts', '2001-01-01Z', '2001-01-02Z')";
    client.batch_execute(make).await.unwrap();
    assert_eq!(dump(&client).await, before);
}
