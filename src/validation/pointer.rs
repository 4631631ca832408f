//! JSON pointers into a payload, as far as they may be shown.

use std::collections::HashSet;

use serde_json::Value;

/// The names that a schema mentions. A member's name comes from the payload, and where members are
/// named by data it may be an account number: a name that the schema does not know is not shown.
#[derive(Debug)]
pub(super) struct KnownNames(HashSet<String>);

impl KnownNames {
    pub(super) fn of(schema: &Value) -> Self {
        let mut names = HashSet::new();
        collect(schema, &mut names);
        Self(names)
    }

    /// The pointer with `*` for each name that the schema does not mention.
    pub(super) fn show(&self, pointer: &str) -> String {
        let mut shown = String::new();
        for segment in pointer.split('/').skip(1) {
            let name = segment.replace("~1", "/").replace("~0", "~");
            let is_index = segment.len() < 10 && segment.bytes().all(|byte| byte.is_ascii_digit());
            shown.push('/');
            shown.push_str(if is_index || self.0.contains(&name) { segment } else { "*" });
        }
        shown
    }
}

fn collect(schema: &Value, names: &mut HashSet<String>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                names.insert(name.clone());
                collect(value, names);
            }
        }
        Value::Array(items) => {
            for item in items {
                // `required` names members that `properties` need not describe.
                names.extend(item.as_str().map(str::to_owned));
                collect(item, names);
            }
        }
        _ => {}
    }
}

/// At most `max` characters of `text`, with a sign that there was more.
pub(super) fn cut(mut text: String, max: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(max) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_only_the_payload_knows_is_not_shown() {
        let names = KnownNames::of(&json!({
            "required": ["memo"], "properties": {"legs": {"items": {"properties": {"a/b": true}}}}
        }));
        assert_eq!(names.show("/legs/3/a~1b"), "/legs/3/a~1b");
        assert_eq!(names.show("/legs/DE89370400440532013000/a~1b"), "/legs/*/a~1b");
        assert_eq!(names.show("/4111111111111111/memo"), "/*/memo");
        assert_eq!(names.show(""), "");
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("ääää".to_owned(), 4), "ääää");
        assert_eq!(cut("äääää".to_owned(), 4), "ääää…");
    }
}
