//! Lets refinery work inside a transaction that is not its own.

use refinery_core::traits::r#async::{AsyncMigrate, AsyncQuery, AsyncTransaction};
use refinery_core::{Migration, Runner};
use thiserror::Error;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio_postgres::Transaction;

use super::MigrateError;

const HISTORY_TABLE: &str = "outbox.schema_history";

/// refinery opens a transaction for each migration; here everything belongs to the caller's one.
struct WithinTransaction<'a>(&'a Transaction<'a>);

#[derive(Debug, Error)]
enum HistoryError {
    #[error("{0}")]
    Database(#[from] tokio_postgres::Error),
    #[error("the migration history has an unreadable row for version {0}")]
    UnreadableRow(i32),
}

impl AsyncTransaction for WithinTransaction<'_> {
    type Error = HistoryError;

    async fn execute<'a, T: Iterator<Item = &'a str> + Send + 'a>(
        &'a mut self,
        queries: T,
    ) -> Result<usize, Self::Error> {
        let mut count = 0;
        for query in queries {
            self.0.batch_execute(query).await?;
            count += 1;
        }
        Ok(count)
    }
}

impl AsyncQuery<Vec<Migration>> for WithinTransaction<'_> {
    async fn query<'a>(&'a mut self, query: &'a str) -> Result<Vec<Migration>, Self::Error> {
        let rows = self.0.query(query, &[]).await?;
        rows.iter().map(migration).collect()
    }
}

impl AsyncMigrate for WithinTransaction<'_> {}

fn migration(row: &tokio_postgres::Row) -> Result<Migration, HistoryError> {
    let version: i32 = row.try_get(0)?;
    let applied_on = OffsetDateTime::parse(row.try_get(2)?, &Rfc3339)
        .map_err(|_| HistoryError::UnreadableRow(version))?;
    let checksum =
        row.try_get::<_, &str>(3)?.parse().map_err(|_| HistoryError::UnreadableRow(version))?;
    Ok(Migration::applied(version, row.try_get(1)?, applied_on, checksum))
}

fn runner(migrations: &[Migration]) -> Runner {
    let mut runner = Runner::new(migrations);
    runner.set_migration_table_name(HISTORY_TABLE);
    runner
}

/// The migrations that the database has seen. The history table must exist.
pub(super) async fn applied(transaction: &Transaction<'_>) -> Result<Vec<Migration>, MigrateError> {
    Ok(runner(&[]).get_applied_migrations_async(&mut WithinTransaction(transaction)).await?)
}

/// Runs and records those of `migrations` that the database has not seen.
pub(super) async fn run(
    transaction: &Transaction<'_>,
    migrations: &[Migration],
) -> Result<Vec<Migration>, MigrateError> {
    let report = runner(migrations).run_async(&mut WithinTransaction(transaction)).await?;
    Ok(report.applied_migrations().clone())
}
