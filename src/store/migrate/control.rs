//! Becomes `symphony_control`, which owns the outbox, for the length of a transaction.

use tokio_postgres::Transaction;

use super::MigrateError;
use super::rights::Facts;

pub(super) const CONTROL: &str = "symphony_control";

/// The role has no members outside a running migration: a member could drop the ledger's trigger.
/// So the membership that a plain user needs is given and taken back in the same transaction, and
/// nobody else ever sees it.
pub(super) struct Control {
    borrowed_by: Option<String>,
}

impl Control {
    /// Makes it possible to become the role; the role must exist.
    pub(super) async fn borrow(
        transaction: &Transaction<'_>,
        facts: &Facts,
    ) -> Result<Self, MigrateError> {
        if facts.superuser || facts.can_set_control {
            return Ok(Self { borrowed_by: None });
        }
        let options =
            if facts.has_membership_options() { " WITH SET TRUE, INHERIT TRUE" } else { "" };
        transaction.batch_execute(&format!("GRANT {CONTROL} TO {}{options}", facts.user)).await?;
        Ok(Self { borrowed_by: Some(facts.user.clone()) })
    }

    pub(super) async fn enter(&self, transaction: &Transaction<'_>) -> Result<(), MigrateError> {
        Ok(transaction.batch_execute(&format!("SET LOCAL ROLE {CONTROL}")).await?)
    }

    /// Leaves the role and gives the membership back.
    pub(super) async fn give_back(self, transaction: &Transaction<'_>) -> Result<(), MigrateError> {
        transaction.batch_execute("RESET ROLE").await?;
        if let Some(user) = self.borrowed_by {
            transaction.batch_execute(&format!("REVOKE {CONTROL} FROM {user}")).await?;
        }
        Ok(())
    }
}
