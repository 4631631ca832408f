//! Lets the bridge be watched: metrics, probes and logs.

mod error;
pub mod health;
pub mod logging;
pub mod metrics;
pub mod server;
pub mod service;

pub use error::AdminError;
