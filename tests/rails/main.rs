//! The rails: the promises that all of them keep, and the faults that each has of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod conformance;
mod http;
mod lanes;

use conformance::conforms;

conforms!(http_conforms, crate::http::HttpHarness);
