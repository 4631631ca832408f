//! Errors of a command, and the exit codes they become.

use std::error::Error as _;

use thiserror::Error;
use uuid::Uuid;

use super::output;
use crate::admin::AdminError;
use crate::config::ConfigError;
use crate::rails::kafka::ReadError;
use crate::relay::RelayError;
use crate::store::StoreError;
use crate::store::migrate::MigrateError;

const FAILED: u8 = 1;
const WRONG_USE: u8 = 2;

#[derive(Debug, Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Relay(#[from] RelayError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the topic and the ledger do not agree")]
    Disagreement,
    #[error("{failed} of the checks failed")]
    Unhealthy { failed: usize },
    #[error(
        "other policies are in force: put these in force with `trestle policies --apply --reason …`"
    )]
    OtherPolicies,
    #[error(
        "the outbox in this database is missing, or older than this binary: run `trestle migrate`"
    )]
    NotCurrent,
    #[error("{bad} of the lines were not enqueued")]
    BadLines { bad: u64 },
    #[error(
        "{cause}; the first {last_line} lines are done ({new} new, {existing} existing, {bad} bad). \
         Run the same command again: rows that are already enqueued are not doubled"
    )]
    Interrupted { cause: StoreError, last_line: u64, new: u64, existing: u64, bad: u64 },
    /// The outbox is fine, but what was asked for cannot be done, or is not there.
    #[error("{0}")]
    Refused(String),
    #[error(
        "stopped after {done} of {asked} rows; {}. List what is still open with `trestle dlq list` and \
         replay that: a row is never replayed twice",
        rest(*in_doubt)
    )]
    ReplayStopped {
        done: usize,
        asked: usize,
        /// The row that was asked for when the answers stopped.
        in_doubt: Option<Uuid>,
        #[source]
        cause: Option<StoreError>,
    },
    /// An act of an operator whose answer got lost.
    #[error("whether this was done is not known: look before you do it again")]
    InDoubt(#[source] StoreError),
    #[error(
        "whether the row was enqueued is not known: run the same command again, it is not doubled"
    )]
    EnqueueInDoubt(#[source] StoreError),
    #[error("upkeep still has work after {0} rounds: run it again")]
    UpkeepUnfinished(u32),
    #[error("cannot read {what}")]
    ReadInput { what: String, source: std::io::Error },
    #[error("cannot write to the standard output")]
    Write(#[source] std::io::Error),
    #[error("cannot start")]
    Runtime(#[source] std::io::Error),
}

fn rest(in_doubt: Option<Uuid>) -> String {
    match in_doubt {
        None => "the rest is as it was".to_owned(),
        Some(id) => format!("whether {id} was replayed is not known, the rest is as it was"),
    }
}

impl CliError {
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Usage(_) | Self::Read(ReadError::Config(_)) => WRONG_USE,
            Self::Store(error) | Self::Relay(RelayError::Store(error))
                if error.is_configuration() =>
            {
                WRONG_USE
            }
            Self::Relay(RelayError::Config(_) | RelayError::NoRails) => WRONG_USE,
            _ => FAILED,
        }
    }

    /// Prints the error and what caused it, one line each.
    pub(super) fn report(&self) {
        output::notice(&format!("error: {self}"));
        let mut source = self.source();
        while let Some(error) = source {
            output::notice(&format!("  because: {error}"));
            source = error.source();
        }
        if let Some(hint) = self.hint() {
            output::notice(&format!("  hint: {hint}"));
        }
    }

    /// What would be right, for what the database refuses an operator.
    fn hint(&self) -> Option<&'static str> {
        let (Self::Store(error) | Self::ReplayStopped { cause: Some(error), .. }) = self else {
            return None;
        };
        match error.server()?.code.as_str() {
            "P7007" => Some("it may be on its way: wait for its outcome, or pause the lane first"),
            "P7008" => Some("`trestle lanes list --all` shows the lanes that there are"),
            "P7009" => Some("`trestle lanes list` shows which lanes are paused"),
            "P7010" | "P7011" => Some("nothing was changed; `trestle dlq list` shows what is open"),
            "55P03" => Some("a producer's open transaction is in the way: try again"),
            _ => None,
        }
    }
}
