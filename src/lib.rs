//! Trestle carries payment instructions from a PostgreSQL outbox to Kafka and HTTP rails.
//!
//! The modules follow the row: [`config`] says where things are, [`store`] is the only one that
//! talks to PostgreSQL, [`cli`] is what a person or a script calls.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")
)]

pub mod cli;
pub mod config;
pub mod store;
