//! The rails: the promises that all of them keep, and the faults that each has of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod conformance;
mod exactly_once_harness;
mod http;
mod kafka;
mod kafka_broken;
mod kafka_examined;
mod kafka_faults;
mod kafka_harness;
mod kafka_lanes;
mod kafka_secured;
mod kafka_size;
mod lanes;
#[path = "../support/mod.rs"]
mod support;

use conformance::conforms;

conforms!(http_conforms, crate::http::HttpHarness);
conforms!(kafka_conforms, crate::kafka_harness::KafkaHarness);
conforms!(exactly_once_conforms, crate::exactly_once_harness::ExactlyOnceHarness);
