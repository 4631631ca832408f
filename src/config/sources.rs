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
    let mut path = path(key);
    let value = match file_of(&path) {
        Some(secret) => {
            path = secret;
            contents(name, &value)?.into()
        }
        None => typed(&path, text(name, value)?),
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
            Some("properties") => lower.replace('_', "."),
            Some(_) => written.to_owned(),
            None => lower,
        });
    }
    path
}

fn kind_at(path: &[String]) -> Option<Kind> {
    kind(&path.iter().map(String::as_str).collect::<Vec<_>>())
}

/// The secret whose file this names, if it does: a key of our own may end like that too.
fn file_of(path: &[String]) -> Option<Vec<String>> {
    let (last, before) = path.split_last()?;
    let name = last.strip_suffix("_file").filter(|_| kind_at(path).is_none())?;
    let secret = [before, &[name.to_owned()]].concat();
    (kind_at(&secret) == Some(Kind::Secret)).then_some(secret)
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

fn text(name: &str, value: OsString) -> Result<String, ConfigError> {
    value.into_string().map_err(|_| ConfigError::NotUtf8(name.to_owned()))
}

fn contents(name: &str, file: &std::ffi::OsStr) -> Result<String, ConfigError> {
    match std::fs::read_to_string(file) {
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
    fn only_a_secret_may_be_in_a_file_of_its_own() {
        let file = |key: &str| file_of(&path(key)).map(|path| path.join("/"));
        assert_eq!(file("DATABASE__URL_FILE").as_deref(), Some("database/url"));
        let token = file("RAILS__X__BEARER_TOKEN_FILE");
        assert_eq!(token.as_deref(), Some("rails/x/bearer_token"));
        for key in ["RAILS__X__CA_FILE", "RAILS__X__TOPIC_FILE", "RELAY__POLL_MS_FILE"] {
            assert_eq!(file(key), None);
        }
    }
}
