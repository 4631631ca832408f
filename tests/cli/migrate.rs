//! `trestle migrate` by a superuser.

use std::process::{Command, Output, Stdio};

use crate::support::{Database, trestle};

/// Starts all of them before it waits for any.
fn migrate_at_once<'a>(urls: impl Iterator<Item = &'a str>) -> Vec<Output> {
    let children: Vec<_> = urls
        .map(|url| {
            Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
                .arg("migrate")
                .env("DATABASE_URL", url)
                .current_dir(env!("CARGO_TARGET_TMPDIR"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("trestle starts")
        })
        .collect();
    children.into_iter().map(|child| child.wait_with_output().expect("trestle ends")).collect()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn assert_all_succeeded(outputs: &[Output]) {
    for output in outputs {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[tokio::test]
async fn twenty_at_once_on_one_empty_database_apply_everything_once() {
    let database = Database::empty().await;
    let url = database.url();
    let outputs = migrate_at_once(std::iter::repeat_n(url.as_str(), 20));
    assert_all_succeeded(&outputs);
    let workers = outputs.iter().filter(|output| stdout(output).contains("applied V0001")).count();
    assert_eq!(workers, 1);
    trestle(&url, &["migrate", "--check"]).assert().success();
}

#[tokio::test]
async fn several_databases_of_one_cluster_can_be_migrated_at_once() {
    let mut databases = Vec::new();
    for _ in 0..6 {
        databases.push(Database::empty().await);
    }
    let urls: Vec<String> = databases.iter().map(Database::url).collect();
    assert_all_succeeded(&migrate_at_once(urls.iter().map(String::as_str)));
}

#[tokio::test]
async fn a_second_run_finds_nothing_to_do() {
    let database = Database::empty().await;
    trestle(&database.url(), &["migrate"]).assert().success();
    let second = trestle(&database.url(), &["migrate"]).assert().success();
    assert_eq!(stdout(second.get_output()), "The database is up to date.\n");
}

#[tokio::test]
async fn everything_belongs_to_the_control_role() {
    let database = Database::new().await;
    let foreign = "SELECT c.oid::regclass::text FROM pg_class c \
        JOIN pg_namespace n ON n.oid = c.relnamespace \
        WHERE n.nspname IN ('outbox', 'outbox_archive') \
          AND c.relowner <> 'symphony_control'::regrole \
        UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p \
        JOIN pg_namespace n ON n.oid = p.pronamespace \
        WHERE n.nspname = 'outbox' AND p.proowner <> 'symphony_control'::regrole";
    let rows = database.connect().await.query(foreign, &[]).await.unwrap();
    let names: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert!(names.is_empty(), "{names:?}");
}

#[tokio::test]
async fn check_fails_on_an_empty_database_and_changes_nothing() {
    let database = Database::empty().await;
    let check = trestle(&database.url(), &["migrate", "--check"]).assert().code(1);
    let message = String::from_utf8_lossy(&check.get_output().stderr).into_owned();
    assert!(message.contains("run `trestle migrate`"), "{message}");
    let schemas = "SELECT FROM pg_namespace WHERE nspname LIKE 'outbox%'";
    assert!(database.connect().await.query(schemas, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn status_tells_pending_from_applied() {
    let database = Database::empty().await;
    let before = trestle(&database.url(), &["migrate", "--status"]).assert().success();
    let before = stdout(before.get_output());
    assert!(before.contains("pending") && before.contains("functions: not installed"), "{before}");

    trestle(&database.url(), &["migrate"]).assert().success();
    let after = trestle(&database.url(), &["migrate", "--status", "--json"]).assert().success();
    let after: serde_json::Value = serde_json::from_slice(&after.get_output().stdout).unwrap();
    assert_eq!(after["code"], "current");
    assert_eq!(after["migrations"][0]["state"], "applied");
}

#[tokio::test]
async fn a_changed_function_is_put_back_when_the_fingerprint_differs() {
    let database = Database::new().await;
    let client = database.connect().await;
    client
        .batch_execute(
            "UPDATE outbox.schema_code SET fingerprint = 'old', trestle_version = '0.0.1'; \
             ALTER FUNCTION outbox.outbox_retry_delay RENAME TO retired",
        )
        .await
        .unwrap();
    trestle(&database.url(), &["migrate", "--check"]).assert().code(1);
    trestle(&database.url(), &["migrate"]).assert().success();
    client.query_one("SELECT 'outbox.outbox_retry_delay'::regproc", &[]).await.unwrap();
    trestle(&database.url(), &["migrate", "--check"]).assert().success();
}

async fn assert_refused(change: &str, expected: &[&str]) {
    let database = Database::new().await;
    let client = database.connect().await;
    client.batch_execute(change).await.unwrap();
    let state = "SELECT (SELECT array_agg(h::text) FROM outbox.schema_history h)::text \
                 || (SELECT c::text FROM outbox.schema_code c)";
    let before: String = client.query_one(state, &[]).await.unwrap().get(0);
    for arguments in [["migrate"].as_slice(), &["migrate", "--check"]] {
        let refused = trestle(&database.url(), arguments).assert().code(1);
        let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        for part in expected {
            assert!(message.contains(part), "{message}");
        }
    }
    let after: String = client.query_one(state, &[]).await.unwrap().get(0);
    assert_eq!(before, after);
    trestle(&database.url(), &["migrate", "--status"]).assert().success();
}

#[tokio::test]
async fn a_database_with_a_migration_from_the_future_is_refused() {
    assert_refused(
        "INSERT INTO outbox.schema_history VALUES (9999, 'future', '2030-01-01T00:00:00Z', '1'); \
         UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = '99.1.2'",
        &["trestle 99.1.2", env!("CARGO_PKG_VERSION"), "V9999__future"],
    )
    .await;
}

#[tokio::test]
async fn a_database_with_newer_functions_is_refused() {
    assert_refused(
        "UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = '99.1.2'",
        &["trestle 99.1.2", "newer"],
    )
    .await;
}

#[tokio::test]
async fn a_migration_that_changed_after_it_was_applied_is_refused() {
    assert_refused(
        "UPDATE outbox.schema_history SET checksum = '1' WHERE version = 1",
        &["V0001__", "other contents"],
    )
    .await;
}
