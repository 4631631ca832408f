//! What keeps a database from being migrated, and the remedy.

use std::error::Error as StdError;

use thiserror::Error;

use super::{MissingRight, SchemaVersion};
use crate::store::{ServerError, StoreError};

#[derive(Debug, Error)]
pub enum MigrateError {
    #[error("PostgreSQL {found} is too old: 14 or newer is needed")]
    ServerTooOld { found: String },
    #[error(
        "the database is newer than this binary: it was migrated by trestle {database_version} \
         ({unknown}), and this is trestle {own_version}; nothing was changed. Use trestle \
         {database_version} or newer on this database"
    )]
    DatabaseNewer { database_version: String, own_version: &'static str, unknown: String },
    #[error(
        "migration {0} was applied to this database with other contents or under another name \
         than this binary carries; nothing was changed. Use the binary that this database was \
         migrated with, or a newer official one: a released migration never changes"
    )]
    ChangedMigration(String),
    #[error(
        "the outbox in this database is older than this binary: it is that of {schema}, and this is \
         {own}: run `trestle migrate` first"
    )]
    Older { schema: SchemaVersion, own: SchemaVersion },
    #[error(
        "there is no outbox in this database, or one that is too old to tell its version, and \
         this is {0}: run `trestle migrate` first"
    )]
    NoVersion(SchemaVersion),
    #[error("{}", rights_message(.0))]
    MissingRights(Vec<MissingRight>),
    #[error("{script} failed, and nothing was changed: {error}")]
    Script { script: String, error: ServerError },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the migrations of this binary are inconsistent: {0}")]
    Inconsistent(String),
    #[error("this binary was built without sql/{0}")]
    Embedded(String),
}

impl MigrateError {
    /// The server's answer, if it is one that caused the error.
    pub(super) fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Script { error, .. } => Some(error),
            Self::Store(error) => error.server(),
            _ => None,
        }
    }

    /// An error while `script` ran: the server's own words, with the name of the script.
    pub(super) fn in_script(script: &str, error: tokio_postgres::Error) -> Self {
        match error.as_db_error() {
            Some(db_error) => Self::Script { script: script.to_owned(), error: db_error.into() },
            None => Self::Store(error.into()),
        }
    }
}

impl From<tokio_postgres::Error> for MigrateError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<refinery_core::Error> for MigrateError {
    fn from(error: refinery_core::Error) -> Self {
        use refinery_core::error::Kind;
        match error.kind() {
            Kind::DivergentVersion(applied, _) => Self::ChangedMigration(applied.to_string()),
            Kind::Connection(what, source) => match server_error(source.as_ref()) {
                Some(server) => Self::Script { script: what.clone(), error: server },
                None => Self::Store(StoreError::ConnectionLost),
            },
            other => Self::Inconsistent(other.to_string()),
        }
    }
}

fn server_error(error: &(dyn StdError + 'static)) -> Option<ServerError> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
            return error.as_db_error().map(ServerError::from);
        }
        current = error.source();
    }
    None
}

fn rights_message(missing: &[MissingRight]) -> String {
    let mut message = String::from(
        "this database user lacks rights that migrate needs; nothing was changed. \
         A superuser has to run:",
    );
    for right in missing {
        message.push_str(&format!("\n  {}  -- {}", right.remedy, right.reason));
    }
    message
}
