//! What every act of an operator has: who and why.

use super::CliError;
use crate::store::{By, StoreError};

/// SQLSTATEs that say that an argument is wrong, not that the act failed.
const WRONG_ARGUMENT: [&str; 6] = ["P7101", "P7102", "P7103", "P7104", "P7113", "P7114"];

#[derive(Debug, clap::Args)]
pub(super) struct Act {
    /// Why; it is recorded, and an auditor will read it
    #[arg(long)]
    reason: String,
    /// Who does it; it is recorded [default: $USER]
    #[arg(long)]
    actor: Option<String>,
}

impl Act {
    /// Who does it. Asked for once, because [`By`] borrows it.
    pub(super) fn actor(&self) -> String {
        actor(self.actor.clone())
    }

    /// Refuses a blank reason before anything is asked or shown.
    pub(super) fn by<'a>(&'a self, actor: &'a str) -> Result<By<'a>, CliError> {
        if self.reason.trim().is_empty() {
            return Err(CliError::Usage("--reason is empty: say why".to_owned()));
        }
        if actor.trim().is_empty() {
            return Err(CliError::Usage("--actor is empty: say who does this".to_owned()));
        }
        Ok(By { actor, reason: &self.reason })
    }
}

pub(super) fn actor(given: Option<String>) -> String {
    given.unwrap_or_else(|| std::env::var("USER").unwrap_or("trestle".to_owned()))
}

/// An argument that the database refuses is wrong use, and an answer that never came no answer.
pub(super) fn refused(error: StoreError) -> CliError {
    if is_in_doubt(&error) {
        return CliError::InDoubt(error);
    }
    match error.server() {
        Some(server) if WRONG_ARGUMENT.contains(&server.code.as_str()) => {
            CliError::Usage(server.to_string())
        }
        _ => CliError::Store(error),
    }
}

/// Whether the act may have been done: its answer never came.
pub(super) fn is_in_doubt(error: &StoreError) -> bool {
    matches!(error, StoreError::ConnectionLost | StoreError::TimedOut(_))
}
