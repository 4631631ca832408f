//! The only place that knows PostgreSQL: one method per SQL function, and all SQL text.

mod acts;
mod claim;
mod complete;
mod connect;
mod deliveries;
mod enqueue;
mod error;
mod examination;
mod failures;
mod lanes;
mod listen;
pub mod migrate;
mod moment;
mod overview;
mod policies;
mod presence;
mod preview;
mod shards;
mod trace;
mod upkeep;
mod watch;
mod worker;

pub use acts::{By, LaneName, RepairedRow, Replayed};
pub use claim::Claim;
pub use complete::{Completed, OutcomeRow, Recorded, Renewed, Repaired, whole_seconds};
pub use connect::target;
pub use deliveries::{Deliveries, Delivery, DeliveryFilter, Fate};
pub use enqueue::{BatchRow, Enqueued, NewRow};
pub use error::{ServerError, StoreError};
pub use examination::{
    LedgerHealth, OldTransaction, Protection, Rights, Server, hears, protection,
};
pub use failures::{FailureFilter, FailureStatus};
pub use lanes::{LaneFilter, LaneStatus};
pub use listen::{Ear, SleepKey};
pub use moment::Moment;
pub use overview::{Overview, RailStatus, WorkerStatus};
pub use preview::ReplayCandidate;
pub use shards::{Holder, LeasedShard, LeasedShards};
pub use trace::TraceEntry;
pub use upkeep::UpkeepRow;
pub use watch::{Gauges, WaitingRail};
pub use worker::WorkerStore;

/// One connection to the database that holds the outbox.
pub struct Store {
    client: tokio_postgres::Client,
}
