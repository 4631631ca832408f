//! Checks payloads against the schema of their rail.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::message::describe;
use super::pointer::KnownNames;
use super::source;
use crate::config::{ConfigError, RailConfig};
use crate::delivery::Failure;

/// The error code of a payload that its schema refuses.
const PAYLOAD_INVALID: &str = "PAYLOAD_INVALID";
/// So many mistakes are told at once.
const MAX_MISTAKES: usize = 3;

/// What the payloads of one rail must look like, compiled once.
#[derive(Debug)]
pub struct Validator {
    /// Without one, every JSON object is right.
    schema: Option<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    validator: jsonschema::Validator,
    written: Value,
    names: KnownNames,
}

impl Validator {
    /// Reads and compiles the schema of the rail `name`.
    pub fn load(name: &str, rail: &RailConfig) -> Result<Self, ConfigError> {
        let Some(written) = source::read(name, rail)? else {
            return Ok(Self { schema: None });
        };
        let validator = source::compile(name, rail, &written)?;
        let names = KnownNames::of(&written);
        Ok(Self { schema: Some(Compiled { validator, written, names }) })
    }

    /// Whether the payload is right; if not, where it is wrong and what would be right. The message
    /// never contains a value of the payload.
    pub fn check(&self, payload: &str) -> Result<(), Failure> {
        let Some(schema) = &self.schema else { return check_is_object(payload) };
        let read: Value = serde_json::from_str(payload).map_err(|_| unreadable(payload))?;
        if schema.validator.is_valid(&read) {
            return Ok(());
        }
        Err(invalid(schema.mistakes(&read)))
    }
}

impl Compiled {
    fn mistakes(&self, payload: &Value) -> String {
        let mut told: Vec<String> = Vec::new();
        for error in self.validator.iter_errors(payload) {
            let mistake = describe(&error, &self.written, &self.names);
            if !told.contains(&mistake) {
                told.push(mistake);
            }
            if told.len() == MAX_MISTAKES {
                break;
            }
        }
        told.join("; ")
    }
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(PAYLOAD_INVALID, message)
}

/// Looks at the form alone, so that numbers of any size and any depth of nesting pass.
fn check_is_object(payload: &str) -> Result<(), Failure> {
    match serde_json::from_str::<IgnoredAny>(payload) {
        Ok(_) if payload.trim_start().starts_with('{') => Ok(()),
        Ok(_) => Err(invalid("the payload must be of type object")),
        Err(_) => Err(invalid("the payload is not JSON")),
    }
}

/// PostgreSQL hands out JSON and nothing else, but a number can be larger there than a double, and
/// objects can be nested deeper than is read here.
fn unreadable(payload: &str) -> Failure {
    match serde_json::from_str::<IgnoredAny>(payload) {
        Ok(_) => invalid(
            "the payload has a number beyond 1.8e308, which must be sent as a string, or is nested deeper than 127 levels",
        ),
        Err(_) => invalid("the payload is not JSON"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kafka(schema: &str) -> Validator {
        let written = serde_json::json!({"kind": "kafka", "topic": "t", "schema": schema});
        Validator::load("k", &RailConfig::Kafka(serde_json::from_value(written).unwrap())).unwrap()
    }

    fn message(validator: &Validator, payload: &str) -> String {
        validator.check(payload).unwrap_err().message
    }

    #[test]
    fn any_takes_every_object_and_nothing_else() {
        let deep = format!("{}{}", r#"{"a":"#.repeat(1_000), "1") + &"}".repeat(1_000);
        for payload in ["{}", " {\"a\": 1e400}", deep.as_str()] {
            kafka("any").check(payload).unwrap();
        }
        for payload in ["[]", "1", "\"{}\"", "null"] {
            assert_eq!(message(&kafka("any"), payload), "the payload must be of type object");
        }
        for payload in ["", "{", "{} {}", "{hunter2}"] {
            assert_eq!(message(&kafka("any"), payload), "the payload is not JSON");
            assert_eq!(message(&kafka("payment"), payload), "the payload is not JSON");
        }
    }

    #[test]
    fn what_is_nested_too_deep_to_be_read_is_refused_with_the_reason() {
        let deep = format!(
            r#"{{"amount": 1, "currency": "EUR", "a": {}{}}}"#,
            "[".repeat(200),
            "]".repeat(200)
        );
        assert!(message(&kafka("payment"), &deep).contains("nested deeper"));
    }
}
