//! A string that must not reach a log or an error message.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

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
        formatter.write_str("[redacted]")
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a string, { env = \"NAME\" } or { file = \"/path\" }")]
enum Written {
    Plain(String),
    Env(FromEnv),
    File(FromFile),
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

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::deserialize(deserializer)? {
            Written::Plain(value) => Ok(Self(value)),
            Written::Env(FromEnv { env }) => match std::env::var(&env) {
                Ok(value) => Ok(Self(value)),
                Err(_) => Err(D::Error::custom(format!(
                    "the environment variable {env}, which a secret is to be read from, is not set"
                ))),
            },
            Written::File(FromFile { file }) => read(&file).map(Self).map_err(D::Error::custom),
        }
    }
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
