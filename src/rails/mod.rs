//! Ways to deliver: the only place that knows librdkafka or sends a row over HTTP.
//!
//! A new rail is one file here, which [`open`] makes a rail of, one variant of [`RailConfig`] (each `match` of it
//! is a question about the new kind, and the compiler asks them all), and one line in the conformance suite.

pub mod http;
pub mod kafka;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::config::{ConfigError, Delivery, RailConfig};
use crate::delivery::{Failure, Lane, Places, Row, ShardKeeper, Tenure};

/// How many rows of one lane go without an answer between them, unless a rail says otherwise.
const LANE_ROWS: i32 = 100;

/// The rail called `name`, as it is configured. Finds what is wrong with its settings; whether anybody is there
/// shows later.
pub fn open(name: &str, config: &RailConfig) -> Result<Arc<dyn Rail>, ConfigError> {
    Ok(match config {
        RailConfig::Kafka(kafka) if kafka.delivery == Delivery::ExactlyOnce => {
            Arc::new(kafka::ExactlyOnceRail::new(name, kafka)?)
        }
        RailConfig::Kafka(kafka) => Arc::new(kafka::KafkaRail::new(name, kafka)?),
        RailConfig::Http(http) => Arc::new(http::HttpRail::new(name, http)?),
    })
}

/// The same way, but all dead letters go to `topic`; nothing where there are no topics.
pub fn open_for_dead_letters(
    carrier: &RailConfig,
    topic: &str,
) -> Result<Option<Arc<dyn Rail>>, ConfigError> {
    match carrier {
        RailConfig::Kafka(kafka) => {
            Ok(Some(Arc::new(kafka::KafkaRail::for_dead_letters(kafka, topic)?)))
        }
        RailConfig::Http(_) => Ok(None),
    }
}

/// A way to deliver rows.
///
/// What an implementer promises:
///
/// - It reports one [`Outcome`](crate::delivery::Outcome) for each unreported row of a lane it was
///   given, within [`longest_send`](Rail::longest_send) of sending it.
/// - `Delivered` only after the receiver has acknowledged the row for good.
/// - `NotSent`, `NotYet`, and `Unavailable` with `maybe_sent: false`, only for rows of which no byte can have
///   reached, or can still reach, the receiver. Whatever is in doubt may have happened.
/// - The rows of an ordered lane reach the receiver in order, and none after one whose outcome stops
///   the lane ([`Lane::goes_on_after`]), or the later ones are reported as in doubt with it.
/// - It sends nothing unless [`Lane::may_send`] says so at that moment.
/// - Payload, headers and secrets never reach a log, an error or an outcome's message.
pub trait Rail: Send + Sync + 'static {
    /// Where a row goes: breakers are kept for each destination. An error refuses the row for good.
    fn destination(&self, row: &Row) -> Result<Arc<str>, Failure>;

    /// The only destination, where there is just one: its open breaker then stops the claims.
    fn only_destination(&self) -> Option<Arc<str>>;

    /// The longest that one row can be under way.
    fn longest_send(&self) -> Duration;

    /// How many rows can be under way at once, in all lanes.
    fn capacity(&self) -> usize;

    /// How many rows of one lane a claim brings at most, so that a participant with a hundred thousand does not make
    /// everybody wait. `halts`: what is behind a row that fails must not be on its way.
    fn lane_rows(&self, halts: bool) -> i32 {
        if halts { 1 } else { LANE_ROWS }
    }

    /// Takes a lane. Returns at once; the outcomes come through [`Lane::report`].
    fn deliver(&self, lane: Arc<Lane>);

    /// Gives up what is still under way and reports it, each row as what it is: not sent, or in
    /// doubt. Called when shutting down has taken too long.
    fn abandon(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// How it delivers in batches, if it does.
    fn sharded(&self) -> Option<&dyn Sharded> {
        None
    }
}

/// A rail that delivers the rows of a shard in batches, each as a whole or not at all.
///
/// What an implementer promises besides:
///
/// - It sends nothing of a shard before [`ShardKeeper::reconcile`] has decided about the batch before, and
///   nothing of a batch that this has decided about.
/// - It reports a row of a batch as anything but delivered, refused or undecided only if no byte of it
///   can ever become visible at the receiver.
/// - Whatever it is in doubt about, it leaves undecided, and finds out before the shard is ready again.
/// - When it is abandoned, it gives up its shards.
pub trait Sharded: Send + Sync {
    /// Where to ask about shards. Called once, before anything else.
    fn begin(&self, keeper: Arc<dyn ShardKeeper>);

    /// These are our shards now, and no others.
    fn own(&self, tenures: &[Tenure]);

    /// Gives up a shard that has nothing under way.
    fn give_up(&self, tenure: Tenure);

    /// What the database says of the shard is not what is known here: no batch until that is found out.
    fn recover(&self, tenure: Tenure);

    /// The shards that can take a batch.
    fn ready(&self) -> Vec<Tenure>;

    /// Whether a shard may become ready by itself, without another word from the database.
    fn is_settling(&self) -> bool;

    /// Whether shards are of no use to us: the destinations have not been reached for long, and others may
    /// reach them. Then it owns none until this says otherwise.
    fn abstains(&self) -> bool;

    /// Where the destinations end: everything that the batches of the next claim send comes after. Asked right
    /// before that claim.
    fn places(&self) -> Places;

    /// Every lane of the last claim has been handed over: its batches are complete.
    fn seal(&self);
}
