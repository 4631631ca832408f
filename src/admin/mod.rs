//! Lets the bridge be watched: metrics, probes, logs and spans.

mod error;
pub mod health;
pub mod logging;
pub mod metrics;
pub mod server;
pub mod service;
pub mod spans;

pub use error::AdminError;
