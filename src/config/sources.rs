//! Where values come from: a file, and variables of the environment.

use std::ffi::OsString;
use std::path::Path;

use figment::providers::{Data, Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Error, Metadata, Profile, Provider, Source};

use super::ConfigError;
use super::keys::{Kind, kind};

const PREFIX: &str = "TRESTLE_";
/// Variables with our prefix that are not configuration keys.
const NOT_KEYS: &[&str] = &["CONFIG", "LOG", "FAILPOINT", "WITHOUT", "HURRY"];
const FILE: &str = "_FILE";
/// The table whose keys are librdkafka's.
const PROPERTIES: &str = "properties";

/// figment takes a dot for a step into a table, but a rail's name may have one.
const DOT: char = '\u{1f}';

/// A rail's name as figment must know it.
pub(super) fn without_dots(name: &str) -> String {
    name.replace('.', &DOT.to_string())
}

pub(super) fn with_dots(name: &str) -> String {
    name.replace(DOT, ".")
}

/// `trestle.toml`
pub(super) struct File(Data<Toml>);

impl File {
    pub(super) fn new(path: &Path) -> Self {
        Self(Toml::file_exact(path))
    }
}

impl Provider for File {
    fn metadata(&self) -> Metadata {
        self.0.metadata()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let mut data = self.0.data()?;
        for dict in data.values_mut() {
            if let Some(Value::Dict(_, rails)) = dict.get_mut("rails") {
                let named = std::mem::take(rails).into_iter();
                *rails = named.map(|(name, rail)| (without_dots(&name), rail)).collect();
            }
        }
        Ok(data)
    }
}

/// One variable, and the key that it sets.
pub(super) struct Variable {
    name: String,
    path: Vec<String>,
    value: Value,
}

impl Provider for Variable {
    fn metadata(&self) -> Metadata {
        Metadata::from(self.name.clone(), Source::Custom("environment".to_owned()))
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        let mut value = self.value.clone();
        for (depth, part) in self.path.iter().enumerate().rev() {
            let is_rail = depth == 1 && self.path[0] == "rails";
            let name = if is_rail { without_dots(part) } else { part.clone() };
            value = Dict::from([(name, value)]).into();
        }
        Ok(Map::from([(Profile::Default, value.into_dict().unwrap_or_default())]))
    }
}

impl Variable {
    /// `name`, or the file that `name`_FILE names, as a text for the key at this place.
    pub(super) fn read(name: &str, path: &[&str]) -> Result<Option<Self>, ConfigError> {
        let path: Vec<String> = path.iter().map(|part| (*part).to_owned()).collect();
        if let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) {
            let value = text(name, value)?.into();
            return Ok(Some(Self { name: name.to_owned(), path, value }));
        }
        let name = format!("{name}{FILE}");
        let Some(file) = std::env::var_os(&name).filter(|file| !file.is_empty()) else {
            return Ok(None);
        };
        let value = contents(&name, &file)?.into();
        Ok(Some(Self { name, path, value }))
    }

    pub(super) fn new(name: &str, path: &[&str], value: &str) -> Self {
        let path = path.iter().map(|part| (*part).to_owned()).collect();
        Self { name: name.to_owned(), path, value: value.into() }
    }
}

/// All variables with our prefix. A value next to the file for it counts more than the file.
pub(super) fn environment() -> Result<Vec<Variable>, ConfigError> {
    let mut found = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Ok(name) = name.into_string() else { continue };
        let Some(key) = name.strip_prefix(PREFIX) else { continue };
        if !value.is_empty() && !NOT_KEYS.contains(&key) {
            found.push(variable(&name, key, value)?);
        }
    }
    found.sort_by_key(|variable| (!variable.name.ends_with(FILE), variable.name.clone()));
    Ok(found)
}

fn variable(name: &str, key: &str, value: OsString) -> Result<Variable, ConfigError> {
    let (path, value) = match file_of(key) {
        Some((path, Kind::List)) => (path, lines(&contents(name, &value)?).into()),
        Some((path, _)) => (path, contents(name, &value)?.into()),
        None => {
            let path = path(key);
            let value = typed(&path, text(name, value)?);
            (path, value)
        }
    };
    Ok(Variable { name: name.to_owned(), path, value })
}

/// What is the user's own is kept as it is written, but a property's dots cannot be.
fn path(key: &str) -> Vec<String> {
    let parts = key.split("__").enumerate().map(|(depth, part)| (depth, part.to_lowercase(), part));
    let mut path: Vec<String> = Vec::new();
    for (depth, lower, written) in parts {
        let table = path.get(2).map(String::as_str).filter(|_| depth == 3);
        path.push(match table {
            Some(PROPERTIES) => lower.replace('_', "."),
            Some(_) => written.to_owned(),
            None => lower,
        });
    }
    path
}

fn kind_at(path: &[String]) -> Option<Kind> {
    kind(&path.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The key whose value is in a file that this names, if it does, and what it holds: a secret, several, or a property
/// of librdkafka. A key of our own may end like that too, but a property does not.
fn file_of(key: &str) -> Option<(Vec<String>, Kind)> {
    let before = key.len().checked_sub(FILE.len())?;
    key.get(before..).filter(|end| end.eq_ignore_ascii_case(FILE))?;
    let path = path(&key[..before]);
    if is_property(&path) {
        return Some((path, Kind::Secret));
    }
    let kind = kind_at(&path).filter(|kind| matches!(kind, Kind::Secret | Kind::List))?;
    Some((path, kind))
}

fn is_property(path: &[String]) -> bool {
    path.len() == 4 && path[0] == "rails" && path[2] == PROPERTIES
}

/// A text stays as it is: `00123` is no number where a text is wanted.
fn typed(path: &[String], text: String) -> Value {
    match kind_at(path) {
        Some(Kind::Text | Kind::Secret) => text.into(),
        Some(Kind::List) => list(&text).into(),
        Some(Kind::Table | Kind::Plain) | None => match text.parse() {
            Ok(value) => value,
        },
    }
}

/// `a,b`, also as it would be written in the file: `["a", "b"]`.
fn list(text: &str) -> Vec<String> {
    let inner = text.trim();
    let inner = inner.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(inner);
    let entries = inner.split(',').map(|entry| entry.trim().trim_matches('"').to_owned());
    entries.filter(|entry| !entry.is_empty()).collect()
}

/// A list in a file: one entry a line, so that a secret may have a comma in it.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn text(name: &str, value: OsString) -> Result<String, ConfigError> {
    value.into_string().map_err(|_| ConfigError::NotUtf8(name.to_owned()))
}

/// An empty file is a secret that was forgotten: to do without it could mean requests that nobody signs.
fn contents(name: &str, file: &std::ffi::OsStr) -> Result<String, ConfigError> {
    match std::fs::read_to_string(file) {
        Ok(value) if value.trim().is_empty() => Err(ConfigError::EmptyFile(name.to_owned())),
        Ok(value) => Ok(value.trim_end().to_owned()),
        Err(source) => Err(ConfigError::SecretFile { variable: name.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, text: &str) -> (String, Value) {
        let path = path(key);
        let value = typed(&path, text.to_owned());
        (path.join("/"), value)
    }

    #[test]
    fn a_text_is_not_taken_for_something_else() {
        for (key, path) in [
            ("RAILS__X__TOPIC", "rails/x/topic"),
            ("RAILS__A.B__BEARER_TOKEN", "rails/a.b/bearer_token"),
            ("RAILS__X__PROPERTIES__SASL_PASSWORD", "rails/x/properties/sasl.password"),
            ("RAILS__X__CODES__HTTP_500", "rails/x/codes/HTTP_500"),
            ("DATABASE__LISTEN_URL", "database/listen_url"),
        ] {
            for text in ["00123", "true", "[a]", "{a=1}", "1e9"] {
                assert_eq!(read(key, text), (path.to_owned(), Value::from(text)));
            }
        }
    }

    #[test]
    fn what_is_no_text_is_read_by_its_kind() {
        assert_eq!(read("RELAY__BATCH_SIZE", "200").1, Value::from(200_u8));
        assert_eq!(read("RELAY__LISTEN", "false").1, Value::from(false));
        for text in ["001,b", "[\"001\", \"b\"]", " 001 , b "] {
            assert_eq!(read("RAILS__X__TOPICS", text).1, Value::from(vec!["001", "b"]));
        }
    }

    #[test]
    fn secrets_lists_and_properties_may_be_in_a_file_of_their_own() {
        let file = |key: &str| file_of(key).map(|(path, kind)| (path.join("/"), kind));
        for (key, path, kind) in [
            ("DATABASE__URL_FILE", "database/url", Kind::Secret),
            ("RAILS__X__BEARER_TOKEN_FILE", "rails/x/bearer_token", Kind::Secret),
            ("RAILS__X__SIGNING_SECRETS_FILE", "rails/x/signing_secrets", Kind::List),
            (
                "RAILS__A.B__PROPERTIES__SASL_PASSWORD_FILE",
                "rails/a.b/properties/sasl.password",
                Kind::Secret,
            ),
        ] {
            assert_eq!(file(key), Some((path.to_owned(), kind)), "{key}");
        }
        for key in [
            "RAILS__X__CA_FILE",
            "RAILS__X__TOPIC_FILE",
            "RAILS__X__CODES__HTTP_FILE",
            "RELAY__POLL_MS_FILE",
        ] {
            assert_eq!(file(key), None, "{key}");
        }
    }

    #[test]
    fn a_list_in_a_file_has_one_entry_a_line() {
        assert_eq!(lines("one,1\r\n\n two \n"), ["one,1", "two"]);
    }
}
