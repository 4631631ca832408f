//! The database contract, proved on a real server. Runs on every PostgreSQL that `make test` has.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod append_only;
mod append_only_statements;
mod bad_batch;
mod bad_enqueue;
mod bad_operator;
mod bad_outcomes;
mod bad_policies;
mod bad_worker;
mod batch_completion;
mod busy_lane;
mod calls;
mod claim_order;
mod commit_order;
mod dead_letters;
mod enqueue_batch;
mod enqueue_conflicts;
mod enqueue_during_completion;
mod enqueue_once;
mod failures;
mod grants;
mod grants_tried;
mod halted_lane;
mod hijack;
mod identities;
mod in_doubt;
mod index_use;
mod lane_acts;
mod lane_pause;
mod lane_skip;
mod leases;
mod ledger_keys;
mod open_producer;
mod ownership;
mod plpgsql_findings;
mod property;
mod rail_policies;
mod refusals;
mod release;
mod repair;
mod replay;
mod retention_archive;
mod retention_kept;
mod retention_keys;
mod retries;
mod schema_dump;
mod status_views;
mod steps;
#[path = "../support/mod.rs"]
mod support;
mod unordered;
mod upkeep;
mod upkeep_locks;
mod upkeep_partitions;
mod wake_up;
