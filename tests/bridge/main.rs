//! The bridge as a process, on a real database and a real broker.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

#[path = "../support/mod.rs"]
mod support;

mod clients;
mod collector;
mod crashes;
mod database_away;
mod database_tls;
mod delivery;
mod drains;
mod exactly_once;
mod large_rows;
mod leaks;
mod letter_room;
mod metrics;
mod metrics_of_loss;
mod other_schema;
mod outages;
mod policy_change;
mod pooler;
mod probes;
mod process;
mod readiness;
mod refusals;
mod rows;
mod scope;
mod secured;
mod shutdown;
mod sleeping;
mod slow_bank;
mod suspects;
mod traces;
mod upkeep;
mod verified;
mod web;
mod web_crashes;
