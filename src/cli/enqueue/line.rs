//! One line of newline-delimited JSON: is it an object that can travel in a batch?
//!
//! What its fields may hold is the database's to judge, in one place for every caller. Reasons
//! name fields, never values: a value may be part of a payment.

use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;

/// A reason quotes a field's name at most; a name longer than this is cut.
const MAX_REASON_CHARS: usize = 300;

/// Values stay the text that they are, so that no number goes through a float.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Fields<'a> {
    #[serde(borrow)]
    instruction_id: Option<&'a RawValue>,
    #[serde(borrow)]
    participant_id: Option<&'a RawValue>,
    #[serde(borrow)]
    idempotency_key: Option<&'a RawValue>,
    #[serde(borrow)]
    rail_type: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    headers: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    tenant_id: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    not_before: Option<&'a RawValue>,
}

/// The row as JSON to send, or why the line is bad.
pub(super) fn parse(line: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?.trim();
    if !text.starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    let fields: Fields<'_> = serde_json::from_str(text).map_err(|error| reason(&error))?;
    serde_json::to_string(&fields).map_err(|error| reason(&error))
}

/// With every field raw, serde can complain about the names of fields and about syntax alone.
fn reason(error: &serde_json::Error) -> String {
    match error.classify() {
        Category::Data => {
            let text = error.to_string();
            let shown = text.split(" at line ").next().unwrap_or(&text);
            shown.chars().flat_map(char::escape_default).take(MAX_REASON_CHARS).collect()
        }
        _ => format!("not valid JSON (column {})", error.column()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::parse;

    fn line(extra: &str) -> String {
        format!(
            r#"{{"instruction_id":"i","participant_id":"p","idempotency_key":"k","rail_type":"kafka"{extra}}}"#
        )
    }

    #[test]
    fn numbers_of_a_payload_keep_every_digit() {
        let row =
            parse(line(r#","payload":{"amount":12345678901234567890.10}"#).as_bytes()).unwrap();
        assert!(row.contains("12345678901234567890.10"));
    }

    #[test]
    fn a_bad_line_says_why() {
        for (text, expected) in [
            (b"42".to_vec(), "not a JSON object"),
            (b"{".to_vec(), "not valid JSON (column 1)"),
            (b"{\"a\":\xff}".to_vec(), "not valid UTF-8"),
            (line(r#","payload":1,"paylod":2"#).into_bytes(), "unknown field `paylod`"),
            (line(r#","payload":1,"payload":2"#).into_bytes(), "duplicate field `payload`"),
        ] {
            let reason = parse(&text).unwrap_err();
            assert!(reason.starts_with(expected), "{reason}");
        }
    }

    proptest! {
        #[test]
        fn no_reason_shows_a_value(field in "instruction_id|payload|tenant_id|not_before|zz", cut in 0_usize..40) {
            let mut text = format!(r#"{{"{field}":"s3cret","payload":"s3cret"}}"#);
            text.truncate(text.len() - cut.min(text.len()));
            if let Err(reason) = parse(text.as_bytes()) {
                prop_assert!(!reason.contains("s3cret"), "{reason}");
            }
        }

        #[test]
        fn any_bytes_are_either_a_row_or_a_bad_line(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
