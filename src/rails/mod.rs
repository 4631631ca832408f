//! Ways to deliver: the only place that knows librdkafka or sends a row over HTTP.
//!
//! A new rail is one file here, one variant of [`crate::config::RailConfig`], and one line in the
//! conformance suite.

pub mod http;
pub mod kafka;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crate::delivery::{Lane, Row};

/// A way to deliver rows.
///
/// What an implementer promises:
///
/// - It reports one [`Outcome`](crate::delivery::Outcome) for each unreported row of a lane it was
///   given, within [`longest_send`](Rail::longest_send) of sending it.
/// - `Delivered` only after the receiver has acknowledged the row for good.
/// - `NotSent`, and `Unavailable` with `maybe_sent: false`, only for rows of which no byte can have
///   reached, or can still reach, the receiver. Whatever is in doubt may have happened.
/// - The rows of an ordered lane reach the receiver in order, and none after one whose outcome stops
///   the lane ([`Lane::goes_on_after`]), or the later ones are reported as in doubt with it.
/// - It sends nothing unless [`Lane::may_send`] says so at that moment.
/// - Payload, headers and secrets never reach a log, an error or an outcome's message.
pub trait Rail: Send + Sync + 'static {
    /// Where a row goes: breakers are kept for each destination. An error refuses the row for good.
    fn destination(&self, row: &Row) -> Result<Arc<str>, crate::delivery::Failure>;

    /// The only destination, where there is just one: its open breaker then stops the claims.
    fn only_destination(&self) -> Option<Arc<str>>;

    /// The longest that one row can be under way.
    fn longest_send(&self) -> Duration;

    /// How many rows can be under way at once, in all lanes.
    fn capacity(&self) -> usize;

    /// Takes a lane. Returns at once; the outcomes come through [`Lane::report`].
    fn deliver(&self, lane: Arc<Lane>);

    /// Gives up what is still under way and reports it, each row as what it is: not sent, or in
    /// doubt. Called when shutting down has taken too long.
    fn abandon(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
