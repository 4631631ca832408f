//! What a rail knows at the moment.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use super::carrier::Carrier;
use super::properties::Shape;
use crate::delivery::Lane;

/// What changes. Rows are handed over under its lock, so that nobody gives a row to a producer
/// that is being emptied.
pub(super) struct State {
    pub(super) carrier: Slot,
    pub(super) topics: HashMap<Arc<str>, Known>,
    /// Lanes that wait for a producer or for what is asked about their topic. Bounded by the
    /// rail's capacity.
    pub(super) waiting: Vec<(Arc<Lane>, usize)>,
    /// The smallest `max.message.bytes` of the topics used so far, or the user's own `batch.size`.
    pub(super) batch_bytes: usize,
    /// A broker has refused a batch: until then, records go alone.
    pub(super) alone_until: Option<Instant>,
    /// No other producer could be made: until then, nobody tries again to replace this one.
    pub(super) reprieve_until: Option<Instant>,
}

/// The producer that takes rows.
pub(super) enum Slot {
    Empty,
    /// The last one is being emptied.
    Emptying,
    Open(Arc<Carrier>),
}

/// What is known of a topic.
pub(super) enum Known {
    Asked,
    Ready(Found),
}

/// A topic that exists.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pub(super) partitions: usize,
    /// How large its batches may be, where that could be read.
    pub(super) limit: Option<usize>,
    /// Whether a record stays there until it is old, which is not so where records are compacted.
    pub(super) keeps: bool,
    pub(super) at: Instant,
}

impl State {
    pub(super) fn new(usual: Shape) -> Self {
        Self {
            carrier: Slot::Empty,
            topics: HashMap::new(),
            waiting: Vec::new(),
            batch_bytes: usual.batch_bytes,
            alone_until: None,
            reprieve_until: None,
        }
    }

    /// What the batches of the next producer must look like.
    pub(super) fn shape(&self) -> Shape {
        Shape {
            batch_bytes: self.batch_bytes,
            alone: self.alone_until.is_some_and(|until| until > Instant::now()),
        }
    }

    pub(super) fn is_current(&self, carrier: &Arc<Carrier>) -> bool {
        matches!(&self.carrier, Slot::Open(open) if Arc::ptr_eq(open, carrier))
    }
}
