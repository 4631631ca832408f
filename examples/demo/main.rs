//! The far end of `make demo` and `make break`: makes the topics, plays the bank, and prints what
//! arrives. The scripts in `stack/` tell the story.
//!
//! Each line that is printed has three parts with tabs between them: a word for the script, what
//! people see, and the Idempotency-Key if there is one. The words:
//!
//! | word | what happened |
//! | --- | --- |
//! | `ready` | everything from here on is seen |
//! | `new` | a payment, and nothing of its lane overtook it |
//! | `again` | a payment that had arrived before |
//! | `late` | a payment that a later one of its lane has overtaken: never expected |
//! | `refused` | a payment that the bank did not take |
//! | `letter` | a dead letter |

mod arrival;
mod bank;
mod records;
mod topics;

use std::error::Error;
use std::sync::Arc;

use clap::{Parser, Subcommand};

use crate::arrival::Journal;

/// Any error ends the demo, in its own words.
type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Parser)]
struct Demo {
    /// host:port of the broker
    #[arg(long, env = "KAFKA_BROKERS")]
    brokers: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make the topics that are missing
    Topics,
    /// Be the bank and a consumer, and print what arrives until stopped
    Watch {
        /// Where the bank listens
        #[arg(long)]
        bank_port: u16,
        /// Print only payments whose instruction begins like this
        #[arg(long)]
        instructions: String,
    },
}

#[tokio::main]
async fn main() -> Result<()> {
    let demo = Demo::parse();
    match demo.command {
        Command::Topics => topics::make(&demo.brokers).await,
        Command::Watch { bank_port, instructions } => {
            watch(&demo.brokers, bank_port, instructions).await
        }
    }
}

async fn watch(brokers: &str, bank_port: u16, instructions: String) -> Result<()> {
    let journal = Arc::new(Journal::new(instructions));
    let records = records::from_now_on(brokers)?;
    let bank = bank::open(bank_port, Arc::clone(&journal)).await?;
    journal.ready();
    tokio::select! {
        closed = bank => closed,
        () = records::read(records, &journal) => Ok(()),
    }
}
