//! The only place that knows PostgreSQL: one method per SQL function, and all SQL text.

mod connect;
mod enqueue;
mod error;
pub mod migrate;
mod upkeep;

pub use enqueue::{BatchRow, Enqueued, NewRow};
pub use error::{ServerError, StoreError};
pub use upkeep::UpkeepRow;

/// One connection to the database that holds the outbox.
pub struct Store {
    client: tokio_postgres::Client,
}
