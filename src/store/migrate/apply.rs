//! The one transaction in which everything happens.

use refinery_core::Migration;
use tokio_postgres::{Client, Transaction};

use super::control::{CONTROL, Control};
use super::embedded::{self, TRESTLE_VERSION};
use super::rights::Facts;
use super::status::{RecordedCode, Status};
use super::{MigrateError, Outcome, history};

/// Transaction-level advisory lock: whoever holds it migrates this database.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305818342591623758)";

/// Names in the scripts are qualified; a user's own search_path must not change what they mean.
/// Functions refer to each other in any order, so their bodies are not checked when created.
const SETTINGS: &str = "SET LOCAL search_path = pg_catalog; SET LOCAL check_function_bodies = off";

const OLDEST_SERVER: i32 = 140_000;

// Not to_regclass: it raises an error for a user who may not look into the schema.
const HAS_TABLE: &str = "SELECT EXISTS (SELECT FROM pg_class c \
    JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = 'outbox' AND c.relname = $1)";
const CAN_READ: &str = "SELECT coalesce(bool_and(has_schema_privilege(c.relnamespace, 'USAGE') \
        AND has_table_privilege(c.oid, 'SELECT')), true) \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = 'outbox' AND c.relname IN ('schema_history', 'schema_code')";
const READ_CODE: &str = "SELECT fingerprint, trestle_version FROM outbox.schema_code";
const WRITE_CODE: &str = "INSERT INTO outbox.schema_code (fingerprint, trestle_version) \
    VALUES ($1, $2) \
    ON CONFLICT (only_row) DO UPDATE SET fingerprint = excluded.fingerprint, \
        trestle_version = excluded.trestle_version, applied_at = clock_timestamp()";

pub(super) async fn apply(client: &mut Client) -> Result<Outcome, MigrateError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LOCK).await?;
    let facts = examine(&transaction).await?;
    let missing = facts.missing_rights();
    if !missing.is_empty() {
        return Err(MigrateError::MissingRights(missing));
    }
    transaction.batch_execute(SETTINGS).await?;
    let roles = embedded::roles()?;
    run_script(&transaction, roles.path, roles.sql).await?;

    // The control role may be a minute or a millisecond old: ask again what we may.
    let control = Control::borrow(&transaction, &Facts::read(&transaction).await?).await?;
    create_schemas(&transaction, &facts).await?;
    control.enter(&transaction).await?;
    let status = read_status(&transaction, &facts).await?;
    status.check_compatible()?;
    if status.is_current() {
        transaction.rollback().await?;
        return Ok(Outcome::AlreadyCurrent);
    }
    let applied = history::run(&transaction, &embedded::migrations()?).await?;
    replace_code(&transaction).await?;
    control.give_back(&transaction).await?;
    transaction.commit().await?;
    Ok(Outcome::Applied(applied.iter().map(label).collect()))
}

/// Reads what `apply` would act on, and rolls back.
pub(super) async fn inspect(client: &mut Client) -> Result<Status, MigrateError> {
    let transaction = client.transaction().await?;
    let facts = examine(&transaction).await?;
    let can_read: bool = transaction.query_one(CAN_READ, &[]).await?.try_get(0)?;
    if !can_read {
        let missing = facts.missing_rights();
        if !missing.is_empty() {
            return Err(MigrateError::MissingRights(missing));
        }
        transaction.batch_execute(LOCK).await?;
        Control::borrow(&transaction, &facts).await?.enter(&transaction).await?;
    }
    let status = read_status(&transaction, &facts).await?;
    transaction.rollback().await?;
    Ok(status)
}

async fn examine(transaction: &Transaction<'_>) -> Result<Facts, MigrateError> {
    let facts = Facts::read(transaction).await?;
    if facts.server_version < OLDEST_SERVER {
        let found = (facts.server_version / 10_000).to_string();
        return Err(MigrateError::ServerTooOld { found });
    }
    Ok(facts)
}

async fn create_schemas(transaction: &Transaction<'_>, facts: &Facts) -> Result<(), MigrateError> {
    // Only what is missing: IF NOT EXISTS asks for the right to create even when it has nothing to do.
    for schema in &facts.missing_schemas {
        transaction
            .batch_execute(&format!("CREATE SCHEMA {schema} AUTHORIZATION {CONTROL}"))
            .await?;
    }
    Ok(())
}

async fn read_status(transaction: &Transaction<'_>, facts: &Facts) -> Result<Status, MigrateError> {
    let applied = match has_table(transaction, "schema_history").await? {
        true => history::applied(transaction).await?,
        false => Vec::new(),
    };
    let recorded = match has_table(transaction, "schema_code").await? {
        true => recorded_code(transaction).await?,
        false => None,
    };
    Ok(Status::compare(
        &embedded::migrations()?,
        &applied,
        &embedded::fingerprint()?,
        recorded,
        facts.missing_roles.clone(),
    ))
}

async fn has_table(transaction: &Transaction<'_>, name: &str) -> Result<bool, MigrateError> {
    Ok(transaction.query_one(HAS_TABLE, &[&name]).await?.try_get(0)?)
}

async fn recorded_code(
    transaction: &Transaction<'_>,
) -> Result<Option<RecordedCode>, MigrateError> {
    match transaction.query_opt(READ_CODE, &[]).await? {
        None => Ok(None),
        Some(row) => Ok(Some(RecordedCode {
            fingerprint: row.try_get(0)?,
            trestle_version: row.try_get(1)?,
        })),
    }
}

async fn replace_code(transaction: &Transaction<'_>) -> Result<(), MigrateError> {
    for script in embedded::repeatables()? {
        run_script(transaction, script.path, script.sql).await?;
    }
    transaction.execute(WRITE_CODE, &[&embedded::fingerprint()?, &TRESTLE_VERSION]).await?;
    Ok(())
}

async fn run_script(
    transaction: &Transaction<'_>,
    path: &str,
    sql: &str,
) -> Result<(), MigrateError> {
    transaction
        .batch_execute(sql)
        .await
        .map_err(|error| MigrateError::in_script(&format!("sql/{path}"), error))
}

fn label(migration: &Migration) -> String {
    format!("V{:04}__{}", migration.version(), migration.name())
}
