//! What the relay and a rail that delivers in batches say to each other about shards.
//!
//! The lanes of such a rail are parted into shards. A shard has one owner at a time and one batch under
//! way. The relay keeps the ownership, which is the database's; the rail keeps the batches.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;
use uuid::Uuid;

/// A batch of a shard: its rows are delivered together or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch {
    pub shard: i16,
    /// Grows with every batch of the shard, whoever owns it.
    pub number: i64,
}

/// A shard that is ours in this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenure {
    pub shard: i16,
    pub epoch: i64,
}

/// A shard of ours that can take a batch, and the last one that we know of. A database that knows another has
/// lost commits: it gives out nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeShard {
    pub tenure: Tenure,
    pub last_batch: i64,
}

/// Of each destination and each part of it, a place.
pub type Places = BTreeMap<String, BTreeMap<i32, i64>>;

/// How far a shard had come when we took it.
#[derive(Debug, Clone, Default)]
pub struct Stand {
    /// The last batch that was claimed.
    pub batch: i64,
    /// Whether nobody knows yet what became of it.
    pub under_way: bool,
    /// No record of it comes before these.
    pub places: Places,
    /// Under which name, and where, its last owner delivered.
    pub sender: Option<String>,
}

/// A row that the receiver has.
#[derive(Debug, Clone)]
pub struct Found {
    pub outbox_id: Uuid,
    pub batch: i64,
    pub reference: String,
}

/// What the receiver has of a shard since its [`Stand`].
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    pub found: Vec<Found>,
    /// The batches that are complete as a whole, and how many rows each has.
    pub complete: Vec<(i64, i32)>,
    /// The last batch that the receiver knows of.
    pub last_batch: Option<i64>,
    /// Where the next batch begins.
    pub places: Places,
    /// Under which name, and where, we deliver.
    pub sender: String,
}

/// When rows are due again that were given back because their worker is gone. It is the database's rule.
pub const COMES_BACK_AFTER: Duration = Duration::from_secs(1);

/// What became of the batch that was under way.
#[derive(Debug, Clone)]
pub struct Reconciled {
    /// The last batch that is decided: nothing of it, or of one before it, may be sent any more.
    pub batch: i64,
    pub recovered: i32,
    pub requeued: i32,
    /// Why nothing could be decided: the shard waits for an operator.
    pub halted: Option<String>,
}

/// Why the keeper did not do as it was asked.
#[derive(Debug, Error)]
pub enum Denied {
    #[error("the shard is not ours any more")]
    Lost,
    /// What the evidence says cannot be recorded.
    #[error("{0}")]
    Contradiction(String),
    /// The shard is not where it was when the evidence was gathered.
    #[error("{0}")]
    Moved(String),
    #[error("the database cannot be reached: {0}")]
    Away(String),
}

/// The database, as far as the owner of a shard needs it. Everything is denied to whoever is not its
/// owner in this epoch. The calls block: they are for threads, not for tasks.
pub trait ShardKeeper: Send + Sync + 'static {
    fn stand(&self, tenure: Tenure) -> Result<Stand, Denied>;

    /// Where destinations end that are about to be used for the first time.
    fn note(&self, tenure: Tenure, places: &Places) -> Result<(), Denied>;

    /// Where destinations end while the shard stands still, if this is the last batch that it had.
    fn keep_up(&self, tenure: Tenure, last_batch: i64, places: &Places) -> Result<(), Denied>;

    /// Decides about the batch under way, if the shard still has the stand that the evidence is about.
    fn reconcile(
        &self,
        tenure: Tenure,
        stand: &Stand,
        evidence: &Evidence,
    ) -> Result<Reconciled, Denied>;

    /// Stops the shard until an operator decides.
    fn halt(&self, tenure: Tenure, reason: &str) -> Result<(), Denied>;

    /// Gives the shard up at once.
    fn release(&self, tenure: Tenure) -> Result<(), Denied>;

    /// A shard has become ready for a batch, or is free to be taken.
    fn changed(&self);
}
