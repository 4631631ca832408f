//! The command line, run as a user runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod config;
mod configuration;
mod enqueue;
mod harness;
mod migrate;
mod migrate_rights;
mod retention;
#[path = "../support/mod.rs"]
mod support;
mod tls;
