//! A string that must not reach a log or an error message.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::shown::REDACTED;

/// A secret read from the configuration. `Debug` hides it; there is no `Display`.
///
/// Written as a string, as `{ env = "NAME" }` or as `{ file = "/run/secrets/name" }`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value itself, named so that every use stands out in a review.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "must be a string, { env = \"NAME\" } or { file = \"/path\" }")]
enum Written {
    Plain(String),
    Env(FromEnv),
    File(FromFile),
}

/// A property of a library: what is not a string there is one for the library.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "must be a string, a whole number, true or false, { env = \"NAME\" } or { file = \"/path\" }"
)]
enum Property {
    Whole(i64),
    Flag(bool),
    Written(Written),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromEnv {
    env: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromFile {
    file: PathBuf,
}

impl Written {
    fn secret(self) -> Result<Secret, String> {
        match self {
            Self::Plain(value) => Ok(Secret(value)),
            Self::Env(FromEnv { env }) => match std::env::var(&env) {
                Ok(value) => Ok(Secret(value)),
                Err(_) => Err(format!(
                    "the environment variable {env}, which a secret is to be read from, is not set"
                )),
            },
            Self::File(FromFile { file }) => read(&file).map(Secret),
        }
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Written::deserialize(deserializer)?.secret().map_err(D::Error::custom)
    }
}

/// Properties of a library by name; any of them may be a secret.
pub(super) fn properties<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Secret>, D::Error> {
    let written = BTreeMap::<String, Property>::deserialize(deserializer)?;
    let read = written.into_iter().map(|(name, property)| {
        let secret = match property {
            Property::Whole(number) => Ok(Secret(number.to_string())),
            Property::Flag(flag) => Ok(Secret(flag.to_string())),
            Property::Written(written) => written.secret(),
        };
        secret.map(|secret| (name, secret)).map_err(D::Error::custom)
    });
    read.collect()
}

fn read(file: &Path) -> Result<String, String> {
    match std::fs::read_to_string(file) {
        Ok(value) => Ok(value.trim_end().to_owned()),
        Err(error) => Err(format!(
            "cannot read {}, which a secret is to be read from: {error}",
            file.display()
        )),
    }
}
