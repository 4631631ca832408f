//! What the relay and the rails say to each other: a row, a lane of rows, what became of each.
//!
//! Neither side knows the other: the relay hands a [`Lane`] to a rail, the rail reports an
//! [`Outcome`] for each of its rows, and the lane tells the relay what may be written down.

mod breaker;
mod lane;
mod lease;
mod outcome;
mod place;
mod row;
mod shard;
mod slots;
mod trace;

pub use breaker::{Breaker, BreakerState, Permit};
pub use lane::{Lane, LaneTerms, Settled, Settlement};
pub use lease::Lease;
pub use outcome::{Class, Failure, Outcome};
pub use place::Place;
pub use row::{DEAD_LETTERS, Row};
pub use shard::{
    Batch, COMES_BACK_AFTER, Denied, Evidence, Found, FreeShard, Places, Reconciled, ShardKeeper,
    Stand, Tenure,
};
pub use slots::{Slots, Taken};
pub use trace::Trace;
