//! The command line: one file a command.

mod act;
mod completions;
mod config;
mod dlq;
mod doctor;
mod enqueue;
mod error;
mod lanes;
mod migrate;
mod output;
mod policies;
mod repair;
mod retention;
mod run;
mod since;
mod status;
mod trace;
mod verify;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::{Config, ConfigError, load};
use crate::store::migrate::{MigrateError, SchemaVersion};
use crate::store::{Store, target};
use error::CliError;

/// Carries payment instructions from a PostgreSQL outbox to Kafka and HTTP rails.
#[derive(Debug, Parser)]
#[command(name = "trestle", version, arg_required_else_help = true)]
#[command(after_help = "Exit codes: 0 done, 1 failed, 2 wrong use or configuration.")]
struct Cli {
    /// Configuration file [default: trestle.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE", env = "TRESTLE_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "there is one of it in a process")]
enum Command {
    /// Create or update the outbox in the database; safe when many start at once
    Migrate(migrate::Args),
    /// Put one payment instruction, or a file of them, into the outbox
    Enqueue(enqueue::Args),
    /// Deliver rows to their rails until told to stop
    Run(run::Args),
    /// Deliver what is due, then exit
    Drain(run::Args),
    /// Show how much waits, for how long, on which rails and lanes, and who works
    Status(status::Args),
    /// Show the life of a payment, an instruction or a participant, in order
    Trace(trace::Args),
    /// List, pause, resume or skip lanes
    #[command(subcommand)]
    Lanes(lanes::Command),
    /// List, show, dismiss or replay FAILED rows
    #[command(subcommand)]
    Dlq(dlq::Command),
    /// Read a topic and compare it with the ledger: missing, duplicate, out of order, foreign
    Verify(verify::Args),
    /// Look at everything that a bridge needs, and say what is wrong and what mends it
    Doctor(doctor::Args),
    /// Take expired leases back, once
    Repair(repair::Args),
    /// Compare the rail policies of this configuration with those in force, or put them in force
    Policies(policies::Args),
    /// Show the configuration in force, without its secrets, and where each value comes from
    Config(config::Args),
    /// Make the ledger's partitions ahead and archive old ones, once
    Retention(retention::Args),
    /// Print a script that completes these commands in a shell
    Completions(completions::Args),
}

/// Parses the arguments, does what they ask and reports a failure on stderr.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing is left to do if even this cannot be printed.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
        }
    };
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            error.report();
            ExitCode::from(error.exit_code())
        }
    }
}

/// What can be wrong with the configuration is found before the runtime starts.
fn start(cli: Cli) -> Result<(), CliError> {
    let file = cli.config.as_deref();
    match &cli.command {
        Command::Config(args) => return config::run(args, file),
        Command::Completions(args) => return completions::run(args),
        _ => {}
    }
    let config = load(file)?;
    config.database.required_url()?;
    check_database(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(CliError::Runtime)?;
    runtime.block_on(async {
        match cli.command {
            Command::Migrate(args) => migrate::run(args, &config).await,
            Command::Enqueue(args) => enqueue::run(args, &config).await,
            Command::Run(args) => run::run(args, &config).await,
            Command::Drain(args) => run::drain(args, &config).await,
            Command::Policies(args) => policies::run(args, &config).await,
            Command::Retention(args) => retention::run(args, &config).await,
            Command::Status(args) => status::run(args, &config).await,
            Command::Trace(args) => trace::run(args, &config).await,
            Command::Lanes(command) => lanes::run(command, &config).await,
            Command::Dlq(command) => dlq::run(command, &config).await,
            Command::Verify(args) => verify::run(args, &config).await,
            Command::Doctor(args) => doctor::run(args, &config).await,
            Command::Repair(args) => repair::run(args, &config).await,
            // They need no runtime: see above.
            Command::Config(_) | Command::Completions(_) => Ok(()),
        }
    })
}

/// The connection that only listens is tried again and again, so that nobody would hear of an error.
fn check_database(config: &Config) -> Result<(), CliError> {
    let database = &config.database;
    database.url.as_ref().map(target).transpose()?;
    if let Some(Err(error)) = database.listen_url.as_ref().map(target) {
        let key = "database.listen_url".to_owned();
        return Err(ConfigError::Wrong { key, problem: format!("is refused: {error}") }.into());
    }
    Ok(())
}

async fn connect(config: &Config) -> Result<Store, CliError> {
    Ok(Store::connect(config.database.required_url()?).await?)
}

/// Connects, and refuses a database of another version, which may mean something else by the same
/// names.
async fn connect_current(config: &Config) -> Result<Store, CliError> {
    let mut store = connect(config).await?;
    let is_current = match store.migration_status().await {
        // Not for this user to read: the outbox itself tells.
        Err(MigrateError::MissingRights(_)) => {
            SchemaVersion::is_current(store.schema_version().await)?
        }
        status => {
            let status = status?;
            status.check_compatible()?;
            status.is_current()
        }
    };
    if is_current { Ok(store) } else { Err(CliError::NotCurrent) }
}
