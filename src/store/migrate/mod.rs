//! Brings a database's outbox to the version of this binary, in one transaction.
//!
//! Tables change by numbered migrations, which [refinery](refinery_core) records. Functions,
//! triggers, views and grants are replaced as a whole whenever their fingerprint differs.

mod apply;
mod control;
mod embedded;
mod error;
mod history;
mod rights;
mod status;
mod transient;
mod version;

pub use embedded::fingerprint_of_everything;
pub use error::MigrateError;
pub use rights::MissingRight;
pub use status::{CodeState, MigrationState, MigrationStatus, Status};
pub use version::{Fit, SchemaVersion};

use super::Store;

/// What `migrate` did.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    AlreadyCurrent,
    /// The migrations that were applied; functions, views and grants were renewed with them.
    Applied(Vec<String>),
}

impl Store {
    /// Applies whatever is missing. Safe when many callers start at once: one works, the others
    /// wait and find nothing to do.
    pub async fn migrate(&mut self) -> Result<Outcome, MigrateError> {
        let mut attempt = 1;
        loop {
            match apply::apply(&mut self.client).await {
                Err(error) if attempt < transient::MAX_ATTEMPTS && transient::is_race(&error) => {
                    tokio::time::sleep(transient::pause(attempt)).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Compares the database with this binary and changes nothing.
    pub async fn migration_status(&mut self) -> Result<Status, MigrateError> {
        let mut attempt = 1;
        loop {
            match apply::inspect(&mut self.client).await {
                Err(error) if attempt < transient::MAX_ATTEMPTS && transient::is_race(&error) => {
                    tokio::time::sleep(transient::pause(attempt)).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }
}
