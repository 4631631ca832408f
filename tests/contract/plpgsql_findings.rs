//! A second reader of the functions: plpgsql_check, where the server has it.

use crate::support::Database;

/// Whole functions, and trigger functions once for each table that they serve.
const FINDINGS: &str = "SELECT concat_ws(' ', f.oid::regprocedure, nullif(f.relation, 0)::regclass, 'line', c.lineno, c.level, c.message)
    FROM (SELECT DISTINCT p.oid, coalesce(t.tgrelid, 0) AS relation
          FROM pg_proc AS p LEFT JOIN pg_trigger AS t ON t.tgfoid = p.oid
          WHERE p.pronamespace = 'outbox'::regnamespace
            AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql')) AS f
    CROSS JOIN LATERAL plpgsql_check_function_tb(
      f.oid, f.relation, other_warnings => true, extra_warnings => true, security_warnings => true) AS c
    ORDER BY 1";

/// A database with the extension, or none where the server does not offer it.
async fn with_the_extension() -> Option<Database> {
    const OFFERED: &str = "SELECT FROM pg_available_extensions WHERE name = 'plpgsql_check'";
    let database = Database::new().await;
    let client = database.connect().await;
    if client.query_opt(OFFERED, &[]).await.unwrap().is_none() {
        println!("skipped: this server does not offer the extension plpgsql_check");
        return None;
    }
    client.batch_execute("CREATE EXTENSION plpgsql_check").await.unwrap();
    Some(database)
}

async fn findings(database: &Database) -> Vec<String> {
    let rows = database.connect().await.query(FINDINGS, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn plpgsql_check_finds_nothing() {
    let Some(database) = with_the_extension().await else { return };
    assert_eq!(findings(&database).await, [""; 0]);
}

#[tokio::test]
async fn plpgsql_check_finds_what_is_put_there() {
    let Some(database) = with_the_extension().await else { return };
    database
        .take_out("check_lease_seconds", "p_lease_seconds IS NULL", "p_lease_second IS NULL")
        .await;
    database.take_out("refuse_truncate", "TG_TABLE_NAME", "NEW.no_such_column").await;
    let findings = findings(&database).await;
    let about = |function: &str| findings.iter().any(|finding| finding.contains(function));
    assert!(about("outbox.check_lease_seconds("), "{findings:#?}");
    assert!(about("outbox.refuse_truncate() outbox.payment_outbox_pending"), "{findings:#?}");
}
