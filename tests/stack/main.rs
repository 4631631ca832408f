//! The development stack: its files and its lint. None of these tests needs a server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod bridge;
mod compose;
mod lint_sql;
mod make;
mod project;
