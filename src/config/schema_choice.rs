//! Which schema the payloads of a rail must have.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a payload must look like.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "String", into = "String")]
pub enum SchemaChoice {
    /// `"payment"`: the schema that comes with the kind of rail.
    #[default]
    Payment,
    /// `"any"`: every JSON object.
    Any,
    /// A JSON Schema of the user's own.
    File(PathBuf),
}

impl From<String> for SchemaChoice {
    fn from(written: String) -> Self {
        match written.as_str() {
            "payment" => Self::Payment,
            "any" => Self::Any,
            _ => Self::File(PathBuf::from(written)),
        }
    }
}

impl From<SchemaChoice> for String {
    fn from(choice: SchemaChoice) -> Self {
        match choice {
            SchemaChoice::Payment => "payment".to_owned(),
            SchemaChoice::Any => "any".to_owned(),
            SchemaChoice::File(path) => path.display().to_string(),
        }
    }
}
