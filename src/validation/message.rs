//! What is wrong with a payload, in words that never repeat what stands in it.
//!
//! The schema library's own messages quote the value. These are made of the pointer, the keyword
//! that was not met, and what the schema says there.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::pointer::{KnownNames, cut};

/// A message is stored with the attempt and sent to the DLQ: long enough for a person, no longer.
const MAX_MESSAGE: usize = 500;
/// More than this is not listed, only counted.
const MAX_OPTIONS: usize = 8;
/// How much of a value or pattern of the schema is shown.
const MAX_QUOTE: usize = 120;

/// One mistake: the pointer, what would be right, and what the schema says about it.
pub(super) fn describe(error: &ValidationError<'_>, schema: &Value, names: &KnownNames) -> String {
    let path = error.schema_path().as_str();
    let around = path.rsplit_once('/').and_then(|(parent, _)| schema.pointer(parent));
    let at = names.show(error.instance_path().as_str());
    let (subject, about) = match error.kind() {
        Kind::Required { property: Value::String(name) } => {
            let described = around.and_then(|schema| schema.get("properties")?.get(name));
            (format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), described)
        }
        _ if at.is_empty() => ("the payload".to_owned(), around),
        _ => (at, around),
    };
    let mut message = format!("{subject} {}", expectation(error.kind(), around));
    if let Some(description) = about.and_then(|schema| schema.get("description")?.as_str()) {
        message.push_str(&format!(" ({description})"));
    }
    cut(message, MAX_MESSAGE)
}

fn expectation(kind: &Kind, around: Option<&Value>) -> String {
    match kind {
        Kind::Required { .. } => "is missing".to_owned(),
        Kind::Type { kind } => format!("must be of type {}", types(kind)),
        Kind::Enum { options } => one_of(options),
        Kind::Constant { expected_value } => format!("must be {}", quote(expected_value)),
        Kind::Pattern { pattern } => format!("must match {}", cut(pattern.clone(), MAX_QUOTE)),
        Kind::Format { format } => format!("must have the format {format}"),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unknown_members(unexpected.len(), around)
        }
        Kind::PropertyNames { error } => {
            format!("has a member whose name {}", expectation(error.kind(), None))
        }
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            format!("must fit one of the schema's {} alternatives", context.len())
        }
        Kind::OneOfMultipleValid { .. } => {
            "must fit exactly one of the schema's alternatives, but fits several".to_owned()
        }
        Kind::Not { .. } => "is what the schema rules out".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Contains => "must contain an item of the kind that the schema asks for".to_owned(),
        Kind::UniqueItems => "must not repeat an item".to_owned(),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "takes too long to compare with the schema's pattern".to_owned()
        }
        bounded => bound(bounded),
    }
}

/// The keywords with a limit.
fn bound(kind: &Kind) -> String {
    match kind {
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("must have at least {}", count(*limit, "character")),
        Kind::MaxLength { limit } => format!("must have at most {}", count(*limit, "character")),
        Kind::MinItems { limit } => format!("must have at least {}", count(*limit, "item")),
        Kind::MaxItems { limit } => format!("must have at most {}", count(*limit, "item")),
        Kind::AdditionalItems { limit } => {
            format!("must have at most {}", count(*limit as u64, "item"))
        }
        Kind::MinProperties { limit } => format!("must have at least {}", count(*limit, "member")),
        Kind::MaxProperties { limit } => format!("must have at most {}", count(*limit, "member")),
        other => format!("does not meet the keyword {} of the schema", other.keyword()),
    }
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(one) => one.to_string(),
        TypeKind::Multiple(several) => {
            let names: Vec<&str> = several.iter().map(|one| one.as_str()).collect();
            names.join(" or ")
        }
    }
}

fn one_of(options: &Value) -> String {
    match options.as_array() {
        Some(options) if options.len() <= MAX_OPTIONS => {
            let options: Vec<String> = options.iter().map(quote).collect();
            format!("must be one of {}", options.join(", "))
        }
        Some(options) => format!("must be one of the schema's {} values", options.len()),
        None => "must be one of the schema's values".to_owned(),
    }
}

/// Names of members are not shown where the schema does not know them; those it knows are.
fn unknown_members(unknown: usize, around: Option<&Value>) -> String {
    let mut message =
        format!("has {} that the schema does not allow", count(unknown as u64, "member"));
    let known = around.and_then(|schema| schema.get("properties")?.as_object());
    if let Some(known) = known.filter(|known| !known.is_empty()) {
        let names: Vec<&str> = known.keys().map(String::as_str).collect();
        message.push_str(&format!(": it allows {}", cut(names.join(", "), MAX_QUOTE)));
    }
    message
}

fn quote(of_the_schema: &Value) -> String {
    cut(of_the_schema.to_string(), MAX_QUOTE)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Stands wherever a payload's value can stand.
    const SECRET: &str = "hunter2";

    fn told(schema: &Value, payload: &Value) -> String {
        let validator =
            jsonschema::draft202012::options().should_validate_formats(true).build(schema).unwrap();
        let error = validator.validate(payload).unwrap_err();
        describe(&error, schema, &KnownNames::of(schema))
    }

    fn told_of(keyword: Value, value: Value) -> String {
        told(&json!({"properties": {"a": keyword}}), &json!({"a": value}))
    }

    #[test]
    fn each_keyword_says_what_would_be_right_and_never_what_is_there() {
        for (keyword, value, expected) in [
            (json!({"type": "integer"}), json!(SECRET), "/a must be of type integer"),
            (
                json!({"type": ["number", "null"]}),
                json!(SECRET),
                "/a must be of type null or number",
            ),
            (json!({"enum": ["x", 1]}), json!(SECRET), r#"/a must be one of "x", 1"#),
            (json!({"const": "x"}), json!(SECRET), r#"/a must be "x""#),
            (json!({"pattern": "^x$"}), json!(SECRET), "/a must match ^x$"),
            (json!({"format": "uuid"}), json!(SECRET), "/a must have the format uuid"),
            (json!({"minLength": 9}), json!(SECRET), "/a must have at least 9 characters"),
            (json!({"maxLength": 1}), json!(SECRET), "/a must have at most 1 character"),
            (json!({"minimum": 5}), json!(4), "/a must be at least 5"),
            (json!({"exclusiveMaximum": 5}), json!(5), "/a must be less than 5"),
            (json!({"multipleOf": 5}), json!(7), "/a must be a multiple of 5"),
            (json!({"maxItems": 0}), json!([SECRET]), "/a must have at most 0 items"),
            (json!({"uniqueItems": true}), json!([SECRET, SECRET]), "/a must not repeat an item"),
            (json!(false), json!(SECRET), "/a is not allowed"),
            (json!({"not": {"type": "string"}}), json!(SECRET), "/a is what the schema rules out"),
            (
                json!({"anyOf": [{"type": "null"}, {"const": 1}]}),
                json!(SECRET),
                "/a must fit one of the schema's 2 alternatives",
            ),
            (
                json!({"propertyNames": {"maxLength": 3}}),
                json!({SECRET: 1}),
                "/a has a member whose name must have at most 3 characters",
            ),
            (
                json!({"properties": {"b": true}, "additionalProperties": false}),
                json!({SECRET: 1}),
                "/a has 1 member that the schema does not allow: it allows b",
            ),
            (
                json!({"unevaluatedProperties": false}),
                json!({SECRET: 1, "c": 2}),
                "/a has 2 members that the schema does not allow",
            ),
            (
                json!({"additionalProperties": {"type": "null"}}),
                json!({SECRET: SECRET}),
                "/a/* must be of type null",
            ),
        ] {
            assert_eq!(told_of(keyword, value), expected);
        }
    }

    #[test]
    fn a_missing_member_is_named_with_what_it_is_for() {
        let schema = json!({
            "required": ["a/b"], "properties": {"a/b": {"description": "how much"}}
        });
        assert_eq!(told(&schema, &json!({})), "/a~1b is missing (how much)");
    }

    #[test]
    fn a_description_is_added_and_the_whole_is_bounded() {
        let keyword = json!({"type": "null", "description": "nothing"});
        assert_eq!(told_of(keyword, json!(1)), "/a must be of type null (nothing)");
        let keyword = json!({"type": "null", "description": "long ".repeat(1_000)});
        assert_eq!(told_of(keyword, json!(1)).chars().count(), MAX_MESSAGE + 1);
    }

    #[test]
    fn the_payload_as_a_whole_has_a_name() {
        assert_eq!(
            told(&json!({"type": "object"}), &json!(1)),
            "the payload must be of type object"
        );
    }
}
