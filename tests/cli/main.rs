//! The command line, run as a user runs it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod away;
mod bad_input;
mod closed;
mod config;
mod configuration;
mod dlq;
mod dlq_replay;
mod doctor;
mod doctor_acls;
mod doctor_collector;
mod doctor_exactly_once;
mod doctor_rails;
mod doctor_scene;
mod enqueue;
mod harness;
mod lanes;
mod migrate;
mod migrate_rights;
mod operator;
mod policies;
mod retention;
mod roles;
mod scene;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod trace;
mod uuid_participants;
mod verify;
mod verify_bad_input;
mod verify_scene;
