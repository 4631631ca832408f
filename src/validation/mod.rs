//! Looks at payloads before anything is sent: JSON Schema 2020-12, one schema for each rail.
//!
//! Validation reads a payload and throws away what it has read: the text goes on to the rail as it
//! is, so that no amount passes through a float.

mod message;
#[cfg(test)]
mod payment_tests;
mod pointer;
pub mod schemas;
mod source;
mod validator;

pub use validator::Validator;
