//! The only place that knows PostgreSQL: one method per SQL function, and all SQL text.

mod claim;
mod complete;
mod connect;
mod enqueue;
mod error;
mod listen;
pub mod migrate;
mod policies;
mod upkeep;
mod watch;
mod worker;

pub use claim::Claim;
pub use complete::{OutcomeRow, Recorded, Renewed, Repaired, whole_seconds};
pub use connect::target;
pub use enqueue::{BatchRow, Enqueued, NewRow};
pub use error::{ServerError, StoreError};
pub use listen::{Ear, SleepKey};
pub use upkeep::UpkeepRow;
pub use watch::Gauges;
pub use worker::WorkerStore;

/// One connection to the database that holds the outbox.
pub struct Store {
    client: tokio_postgres::Client,
}
