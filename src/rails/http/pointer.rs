//! JSON pointers (RFC 6901) into an answer.
//!
//! The text of a number is taken as it stands, because a twenty-digit reference must not pass
//! through a float.

use std::collections::HashMap;

use serde_json::value::RawValue;

/// What is kept of a value that a receiver sent. It is stored with every attempt.
const MAX_CHARS: usize = 255;

/// A pointer such as `/payment/id`.
#[derive(Debug, Clone)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// `None` unless it starts with `/`: the whole answer is no code and no reference.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let tokens = text.strip_prefix('/')?.split('/');
        Some(Self(tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect()))
    }

    /// The string, number or boolean that it points to, made fit for a text column.
    pub(super) fn find(&self, answer: &RawValue) -> Option<String> {
        let mut here = answer;
        for token in &self.0 {
            here = step(here, token)?;
        }
        let text = scalar(here)?;
        let kept: String = text.chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
        (!kept.is_empty()).then_some(kept)
    }
}

fn step<'a>(value: &'a RawValue, token: &str) -> Option<&'a RawValue> {
    match value.get().as_bytes().first()? {
        b'{' => {
            let mut members: HashMap<String, &RawValue> = serde_json::from_str(value.get()).ok()?;
            members.remove(token)
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            elements.get(token.parse::<usize>().ok()?).copied()
        }
        _ => None,
    }
}

fn scalar(value: &RawValue) -> Option<String> {
    match value.get().as_bytes().first()? {
        b'"' => serde_json::from_str(value.get()).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(value.get().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pointer: &str, answer: &str) -> Option<String> {
        Pointer::parse(pointer).unwrap().find(serde_json::from_str(answer).unwrap())
    }

    #[test]
    fn it_walks_objects_and_arrays() {
        let answer = r#"{"a": [{"b/c": "x"}, {"d~e": true}], "": {"": 7}}"#;
        assert_eq!(find("/a/0/b~1c", answer).as_deref(), Some("x"));
        assert_eq!(find("/a/1/d~0e", answer).as_deref(), Some("true"));
        assert_eq!(find("//", answer).as_deref(), Some("7"));
    }

    #[test]
    fn a_long_number_is_not_rounded() {
        let answer = r#"{"id": 12345678901234567890.10}"#;
        assert_eq!(find("/id", answer).as_deref(), Some("12345678901234567890.10"));
    }

    #[test]
    fn what_is_not_there_or_not_a_scalar_is_nothing() {
        let answer = r#"{"a": [1], "n": null, "e": "", "o": {}}"#;
        for pointer in ["/b", "/a/1", "/a/x", "/a/0/b", "/n", "/e", "/o", "/a"] {
            assert_eq!(find(pointer, answer), None, "{pointer}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_and_fit_for_a_text_column() {
        let long = format!(r#"{{"id": "a\u0000b\n{}"}}"#, "é".repeat(1_000));
        let kept = find("/id", &long).unwrap();
        assert!(kept.starts_with("abé"), "{kept}");
        assert_eq!(kept.chars().count(), MAX_CHARS);
    }

    #[test]
    fn a_pointer_starts_with_a_slash() {
        assert!(Pointer::parse("payment/id").is_none());
        assert!(Pointer::parse("").is_none());
    }
}
