//! `trestle migrate`

use super::{CliError, connect, output};
use crate::config::Config;
use crate::store::migrate::{CodeState, MigrationState, Outcome, Status};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Change nothing; exit with 1 if there is something to apply or the database is newer
    #[arg(long, conflicts_with = "status")]
    check: bool,
    /// Change nothing; list every migration and say whether the functions are current
    #[arg(long)]
    status: bool,
    /// Print the status as JSON
    #[arg(long, requires = "status")]
    json: bool,
}

pub(super) async fn run(args: Args, config: &Config) -> Result<(), CliError> {
    let mut store = connect(config).await?;
    if args.status {
        return show(&store.migration_status().await?, args.json);
    }
    if args.check {
        return check(&store.migration_status().await?);
    }
    match store.migrate().await? {
        Outcome::AlreadyCurrent => output::line("The database is up to date."),
        Outcome::Applied(migrations) => {
            for migration in migrations {
                output::line(&format!("applied {migration}"))?;
            }
            output::line(
                "Functions, triggers, views and grants are renewed. The database is up to date.",
            )
        }
    }
}

fn check(status: &Status) -> Result<(), CliError> {
    status.check_compatible()?;
    if !status.is_current() {
        return Err(CliError::NotCurrent);
    }
    output::line("The database is up to date.")
}

fn show(status: &Status, json: bool) -> Result<(), CliError> {
    if json {
        return output::document(status);
    }
    let rows = status.migrations.iter().map(|migration| {
        let applied_on = migration.applied_on.clone().unwrap_or_default();
        [migration.label(), state(migration.state).to_owned(), applied_on]
    });
    output::table(["MIGRATION", "STATE", "APPLIED ON"], rows)?;
    let by = status.database_version.as_ref().map(|version| format!(" (by trestle {version})"));
    output::line(&format!("functions: {}{}", code(status.code), by.unwrap_or_default()))?;
    if !status.missing_roles.is_empty() {
        output::line(&format!("missing roles: {}", status.missing_roles.join(", ")))?;
    }
    Ok(())
}

fn state(state: MigrationState) -> &'static str {
    match state {
        MigrationState::Applied => "applied",
        MigrationState::Pending => "pending",
        MigrationState::Changed => "changed since",
        MigrationState::Unknown => "unknown here",
    }
}

fn code(state: CodeState) -> &'static str {
    match state {
        CodeState::Current => "current",
        CodeState::Missing => "not installed",
        CodeState::Outdated => "outdated",
        CodeState::Newer => "newer than this binary",
    }
}
