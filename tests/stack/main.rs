//! The development stack, its lint, and what is shipped for Prometheus and Grafana. None of these tests needs a server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod alerts;
mod bridge;
mod compose;
mod dashboard;
mod lint_sql;
mod make;
mod project;
mod promtool;
mod runbook;
