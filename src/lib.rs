//! Trestle carries payment instructions from a PostgreSQL outbox to Kafka and HTTP rails.
//!
//! The modules follow the row: [`config`] says where things are, [`store`] is the only one that
//! talks to PostgreSQL, [`relay`] claims rows and writes down what became of them, [`validation`]
//! looks at payloads before anything is sent, [`rails`] send, with [`delivery`] as the language
//! between relay and rails; [`admin`] lets the bridge be watched, [`cli`] is what a person calls.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")
)]

pub mod admin;
pub mod cli;
pub mod config;
pub mod delivery;
mod failpoint;
pub mod rails;
pub mod relay;
pub mod store;
pub mod validation;
