//! The bridge as a process, on a real database and a real broker.

#[path = "../support/mod.rs"]
mod support;

mod crashes;
mod delivery;
mod outages;
mod process;
mod refusals;
mod rows;
mod shutdown;
mod sleeping;
mod web;
