//! Where the schema of a rail comes from, and what can be wrong with one of the user's own.

use std::path::Path;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ReferencingError, ValidationError};
use serde_json::Value;

use super::pointer;
use super::schemas;
use crate::config::{ConfigError, RailConfig, SchemaChoice};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// A remark of the schema library may quote the schema; this much of it is enough.
const MAX_REMARK: usize = 300;

/// The schema of the rail `name`; none where every JSON object is welcome.
pub(super) fn read(name: &str, rail: &RailConfig) -> Result<Option<Value>, ConfigError> {
    let parsed = match (rail.schema(), rail) {
        (SchemaChoice::Any, _) => return Ok(None),
        (SchemaChoice::Payment, RailConfig::Kafka(_)) => parse(schemas::KAFKA_PAYMENT),
        (SchemaChoice::Payment, RailConfig::Http(_)) => parse(schemas::HTTP_PAYMENT),
        (SchemaChoice::File(path), _) => read_file(path),
    };
    parsed.map(Some).map_err(|problem| wrong(name, rail, &problem))
}

/// Compiles it. No reference is ever fetched, neither from a host nor from a file.
pub(super) fn compile(
    name: &str,
    rail: &RailConfig,
    schema: &Value,
) -> Result<jsonschema::Validator, ConfigError> {
    jsonschema::draft202012::options()
        .offline()
        .build(schema)
        .map_err(|error| wrong(name, rail, &what_is_wrong(&error)))
}

fn wrong(name: &str, rail: &RailConfig, problem: &str) -> ConfigError {
    let file = match rail.schema() {
        SchemaChoice::File(path) => path.display().to_string(),
        SchemaChoice::Payment => "payment".to_owned(),
        SchemaChoice::Any => "any".to_owned(),
    };
    let problem = format!("is {file:?}, {problem}");
    ConfigError::Wrong { key: format!("rails.{name}.schema"), problem }
}

fn read_file(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!("which cannot be read ({error}): it must be \"payment\", \"any\" or the path of a JSON Schema")
    })?;
    let schema = parse(&text)?;
    match schema.get("$schema").map(|dialect| dialect.as_str().unwrap_or_default()) {
        Some(dialect) if dialect.trim_end_matches('#') != DIALECT => Err(format!(
            "which has another `$schema` than {DIALECT}: only that dialect is understood"
        )),
        _ => Ok(schema),
    }
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("which is not JSON: {error}"))
}

fn what_is_wrong(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) => format!(
            "which refers to {uri}: a schema is never fetched, so put it into the same file, under $defs"
        ),
        ValidationErrorKind::Referencing(reference) => {
            format!("which has a reference that leads nowhere: {reference}")
        }
        _ => {
            let place = match error.instance_path().as_str() {
                "" => "at its root",
                path => path,
            };
            let remark = pointer::cut(error.to_string(), MAX_REMARK);
            format!("which is not a valid JSON Schema, {place}: {remark}")
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::validation::Validator;

    /// The configuration of a rail whose schema is `schema`.
    fn rail(schema: &str) -> RailConfig {
        let written = serde_json::json!({"kind": "kafka", "topic": "t", "schema": schema});
        RailConfig::Kafka(serde_json::from_value(written).unwrap())
    }

    fn refused(contents: &str) -> String {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(contents.as_bytes()).unwrap();
        let path = file.path().to_str().unwrap();
        let message = Validator::load("ach", &rail(path)).unwrap_err().to_string();
        assert!(message.starts_with("`rails.ach.schema` is "), "{message}");
        assert!(message.contains(path), "{message}");
        message
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let message = Validator::load("ach", &rail("no-such.json")).unwrap_err().to_string();
        assert!(
            message.starts_with("`rails.ach.schema` is \"no-such.json\", which cannot be read")
        );
    }

    #[test]
    fn a_file_that_is_no_json_is_refused_with_the_place() {
        let message = refused("{\n  \"type\": }");
        assert!(message.contains("is not JSON") && message.contains("line 2"), "{message}");
    }

    #[test]
    fn a_schema_that_is_none_is_refused_with_the_pointer() {
        let message = refused(r#"{"properties": {"amount": {"type": "money"}}}"#);
        assert!(
            message.contains("not a valid JSON Schema, /properties/amount/type: "),
            "{message}"
        );
        let message = refused(r#"{"properties": {"a": {"pattern": "("}}}"#);
        assert!(message.contains("not a valid JSON Schema, /properties/a/pattern: "), "{message}");
        let message = refused(r#""payment""#);
        assert!(message.contains("at its root"), "{message}");
    }

    #[test]
    fn another_dialect_is_refused() {
        let message = refused(r#"{"$schema": "http://json-schema.org/draft-07/schema#"}"#);
        assert!(message.contains("only that dialect"), "{message}");
    }

    #[test]
    fn a_reference_to_elsewhere_is_refused_and_never_fetched() {
        for uri in ["https://bank.example/payment.json", "file:///etc/hostname", "other.json"] {
            let message = refused(&format!(r#"{{"properties": {{"a": {{"$ref": "{uri}"}}}}}}"#));
            assert!(message.contains("a schema is never fetched"), "{message}");
            assert!(message.contains(uri), "{message}");
        }
        let message = refused(r##"{"$ref": "#/$defs/amount"}"##);
        assert!(
            message.contains("leads nowhere") && message.contains("/$defs/amount"),
            "{message}"
        );
    }

    #[test]
    fn a_schema_of_the_users_own_is_used() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let schema = r##"{"$defs": {"iban": {"type": "string", "minLength": 15}},
                         "properties": {"iban": {"$ref": "#/$defs/iban"}}, "required": ["iban"]}"##;
        file.write_all(schema.as_bytes()).unwrap();
        let validator = Validator::load("ach", &rail(file.path().to_str().unwrap())).unwrap();
        validator.check(r#"{"iban": "DE89370400440532013000"}"#).unwrap();
        let failure = validator.check(r#"{"iban": "DE89"}"#).unwrap_err();
        assert_eq!(failure.message, "/iban must have at least 15 characters");
    }
}
