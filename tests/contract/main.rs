//! The database contract, proved on a real server. Runs on every PostgreSQL that `make test` has.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod calls;
#[path = "../support/mod.rs"]
mod support;
