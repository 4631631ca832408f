//! What can be wrong with the configuration, in words that name the key and the remedy.

use std::path::PathBuf;

use figment::Source;
use figment::error::{Actual, Kind};
use thiserror::Error;

use super::sources::with_dots;

/// Further away than this, a known key is no plausible reading of an unknown one.
const MAX_TYPOS: usize = 3;

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("configuration file {} does not exist", .0.display())]
    FileNotFound(PathBuf),
    #[error(
        "no database is configured: set DATABASE_URL, or `url` under [database] in trestle.toml, \
         to postgres://user:password@host:5432/database"
    )]
    MissingDatabaseUrl,
    #[error("{0} is not valid UTF-8")]
    NotUtf8(String),
    #[error("cannot read the file that {variable} names")]
    SecretFile { variable: String, source: std::io::Error },
    #[error("the file that {0} names is empty")]
    EmptyFile(String),
    #[error("unknown key `{key}` in {place}{hint}")]
    UnknownKey { key: String, place: String, hint: String },
    #[error("`{key}` in {place} must be {expected}, but is {actual}")]
    WrongType { key: String, place: String, expected: String, actual: &'static str },
    #[error(
        "`{key}.kind` must be \"kafka\" or \"http\"{}",
        found.as_ref().map_or_else(|| ", but is missing".to_owned(), |found| format!(", not {found:?}"))
    )]
    RailKind { key: String, found: Option<String> },
    #[error("`{key}` {problem}")]
    Wrong { key: String, problem: String },
    #[error("{place}: {message}")]
    Invalid { place: String, message: String },
}

impl ConfigError {
    /// figment puts where it began to read, `rails` and the name, behind the path it came to.
    pub(super) fn from_rail(mut error: figment::Error) -> Self {
        let began = error.path.len().min(2);
        error.path.rotate_right(began);
        Self::from_figment(error)
    }

    pub(super) fn from_figment(error: figment::Error) -> Self {
        let place = place(&error);
        match &error.kind {
            Kind::UnknownField(field, known) => Self::UnknownKey {
                key: path_of(&error, Some(field)),
                place,
                hint: nearest(field, known, &error),
            },
            Kind::InvalidType(actual, expected) => Self::WrongType {
                key: path_of(&error, None),
                place,
                expected: plain(expected).to_owned(),
                actual: kind_of(actual),
            },
            Kind::Message(message) if error.path.is_empty() => {
                Self::Invalid { place, message: without_excerpt(message) }
            }
            Kind::Message(message) => Self::Invalid {
                place,
                message: format!("`{}`: {}", path_of(&error, None), without_excerpt(message)),
            },
            _ => Self::Invalid {
                place,
                message: format!("`{}` is not valid", path_of(&error, None)),
            },
        }
    }
}

fn place(error: &figment::Error) -> String {
    match error.metadata.as_ref() {
        Some(metadata) => match metadata.source.as_ref() {
            Some(Source::File(path)) => path.file_name().map_or_else(
                || path.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            ),
            Some(Source::Custom(_)) => format!("the environment ({})", metadata.name),
            _ => "the configuration".to_owned(),
        },
        None => "the configuration".to_owned(),
    }
}

fn path_of(error: &figment::Error, last: Option<&str>) -> String {
    let mut parts: Vec<&str> = error.path.iter().map(String::as_str).collect();
    if let Some(last) = last.filter(|last| parts.last() != Some(last)) {
        parts.push(last);
    }
    with_dots(&parts.join("."))
}

fn nearest(field: &str, known: &[&str], error: &figment::Error) -> String {
    let parents: Vec<&str> =
        error.path.iter().map(String::as_str).filter(|part| *part != field).collect();
    let full = |name: &str| with_dots(&[parents.as_slice(), &[name]].concat().join("."));
    let best = known.iter().min_by_key(|name| strsim::damerau_levenshtein(field, name));
    match best {
        Some(best) if strsim::damerau_levenshtein(field, best) <= MAX_TYPOS => {
            format!(": did you mean `{}`?", full(best))
        }
        _ => {
            let names: Vec<String> = known.iter().map(|name| format!("`{}`", full(name))).collect();
            format!(": known there is {}", names.join(", "))
        }
    }
}

/// serde calls a table a struct with the name of ours; a user knows neither.
fn plain(expected: &str) -> &str {
    if expected.starts_with("struct ") { "a table" } else { expected }
}

/// The type alone: the value may be a connection string with its password.
fn kind_of(actual: &Actual) -> &'static str {
    match actual {
        Actual::Bool(_) => "true or false",
        Actual::Unsigned(_) | Actual::Signed(_) => "a whole number",
        Actual::Float(_) => "a decimal number",
        Actual::Char(_) | Actual::Str(_) => "a string",
        Actual::Seq => "a list",
        Actual::Map => "a table",
        _ => "something else",
    }
}

/// TOML's messages quote the offending line, which may hold a password: keep where and why.
fn without_excerpt(message: &str) -> String {
    let kept: Vec<&str> = message
        .lines()
        .filter(|line| {
            !line
                .trim_start_matches(|c: char| c.is_ascii_digit() || c.is_whitespace())
                .starts_with('|')
        })
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    kept.join(": ")
}

#[cfg(test)]
mod tests {
    use super::without_excerpt;

    #[test]
    fn an_excerpt_of_the_file_never_reaches_the_message() {
        let toml = "TOML parse error at line 2, column 7\n  |\n2 | url = \"postgres://u:hunter2@h\n  |       ^\ninvalid basic string\n";
        let message = without_excerpt(toml);
        assert_eq!(message, "TOML parse error at line 2, column 7: invalid basic string");
    }
}
