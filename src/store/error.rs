//! Errors of the store, cleaned of whatever could carry a payload.

use thiserror::Error;
use tokio_postgres::error::SqlState;

/// What the server said: its code and its message. Its DETAIL is left out, because PostgreSQL
/// quotes whole rows there.
#[derive(Debug, Error)]
#[error("{message} (SQLSTATE {code})")]
pub struct ServerError {
    pub code: String,
    pub message: String,
}

#[derive(Debug, Error)]
pub enum StoreError {
    #[error("the database connection string is not valid: {0}")]
    InvalidUrl(String),
    #[error("cannot connect to the database at {target}: {reason}")]
    Connect { target: String, reason: String },
    #[error("the connection to the database was lost")]
    ConnectionLost,
    #[error("the database did not answer within {} s", .0.as_secs())]
    TimedOut(std::time::Duration),
    #[error("the outbox is missing or outdated in this database: run `trestle migrate` ({0})")]
    NotMigrated(ServerError),
    #[error("this database user lacks a right: {0}")]
    Forbidden(ServerError),
    #[error("{0}")]
    Server(ServerError),
    #[error("the database answered something this version does not understand: {0}")]
    Protocol(String),
}

impl StoreError {
    /// The error is about the connection string, not about the world.
    pub fn is_configuration(&self) -> bool {
        matches!(self, Self::InvalidUrl(_))
    }

    /// The server refused the data it was given, so some part of that data is at fault: class 22
    /// (data exception), 54 (too long, too deep) and the outbox's own P7. Not 23: a violated
    /// constraint is an alarm about the outbox, not about a row.
    pub fn is_about_data(&self) -> bool {
        self.server()
            .is_some_and(|error| ["22", "54", "P7"].iter().any(|c| error.code.starts_with(c)))
    }

    /// A constraint of the outbox was violated: an alarm, whatever is tried next.
    pub fn is_integrity(&self) -> bool {
        self.server().is_some_and(|error| error.code.starts_with("23"))
    }

    /// The same call may succeed when made again: serialization failure or deadlock.
    pub fn is_transient(&self) -> bool {
        self.server().is_some_and(|error| matches!(error.code.as_str(), "40001" | "40P01"))
    }

    /// It took too long: the server gave it up, or we did.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::TimedOut(_)) || self.is_given_up_by_server()
    }

    /// It took the server too long, and nothing of it has happened.
    pub fn is_given_up_by_server(&self) -> bool {
        self.server().is_some_and(|error| error.code == SqlState::QUERY_CANCELED.code())
    }

    pub fn server(&self) -> Option<&ServerError> {
        match self {
            Self::Server(error) | Self::NotMigrated(error) | Self::Forbidden(error) => Some(error),
            _ => None,
        }
    }
}

impl From<&tokio_postgres::error::DbError> for ServerError {
    fn from(error: &tokio_postgres::error::DbError) -> Self {
        Self { code: error.code().code().to_owned(), message: error.message().to_owned() }
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db_error) = error.as_db_error() else {
            return if error.is_closed() || is_io(&error) {
                Self::ConnectionLost
            } else {
                Self::Protocol(error.to_string())
            };
        };
        let server = ServerError::from(db_error);
        match *db_error.code() {
            SqlState::UNDEFINED_FUNCTION
            | SqlState::UNDEFINED_TABLE
            | SqlState::UNDEFINED_COLUMN
            | SqlState::INVALID_SCHEMA_NAME => Self::NotMigrated(server),
            SqlState::INSUFFICIENT_PRIVILEGE => Self::Forbidden(server),
            SqlState::ADMIN_SHUTDOWN | SqlState::CRASH_SHUTDOWN => Self::ConnectionLost,
            _ => Self::Server(server),
        }
    }
}

pub(super) fn is_io(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}
