//! The keys that there are, as the structs themselves name them.

use std::cell::Cell;

use serde::de::value::{Error, MapDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::{
    AdminConfig, DatabaseConfig, DlqConfig, HttpRailConfig, KafkaRailConfig, RelayConfig,
    TelemetryConfig,
};

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Also what is one of some words, or a path.
    Text,
    Secret,
    /// Of texts or secrets.
    List,
    /// Names that are the user's own, each with a text.
    Table,
    /// A number, or true or false.
    Plain,
}

type Keys = Vec<(&'static str, Kind)>;

/// The kind of the key at this place, where there is one.
pub(super) fn kind(path: &[&str]) -> Option<Kind> {
    let (keys, key) = match path {
        ["database", key] => (of::<DatabaseConfig>(), key),
        ["relay", key] => (of::<RelayConfig>(), key),
        ["admin", key] => (of::<AdminConfig>(), key),
        ["telemetry", key] => (of::<TelemetryConfig>(), key),
        ["dlq", key] => (of::<DlqConfig>(), key),
        ["rails", _, key] => (of_rails(), key),
        ["rails", _, table, _] => {
            let is_table = kind(&["rails", "", table]) == Some(Kind::Table);
            return is_table.then_some(Kind::Text);
        }
        _ => return None,
    };
    keys.into_iter().find(|(known, _)| known == key).map(|(_, kind)| kind)
}

/// A key that both kinds of rail have holds the same in both.
fn of_rails() -> Keys {
    [of::<KafkaRailConfig>(), of::<HttpRailConfig>()].concat()
}

/// Asks the struct: once for the names of its keys, then for each of them what it wants to read.
fn of<T: DeserializeOwned>() -> Keys {
    let names = Cell::new([].as_slice());
    let _ = T::deserialize(Names(&names));
    let kind = |name: &'static str| {
        let kind = Cell::new(Kind::Plain);
        let entry = std::iter::once((name, Wanted(&kind)));
        let _ = T::deserialize(MapDeserializer::new(entry));
        (name, kind.get())
    };
    names.get().iter().map(|name| kind(name)).collect()
}

fn enough() -> Error {
    Error::custom("this is all that was asked")
}

struct Names<'a>(&'a Cell<&'static [&'static str]>);

impl<'de> Deserializer<'de> for Names<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.set(fields);
        Err(enough())
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(enough())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

struct Wanted<'a>(&'a Cell<Kind>);

impl Wanted<'_> {
    fn is<T>(&self, kind: Kind) -> Result<T, Error> {
        self.0.set(kind);
        Err(enough())
    }
}

impl<'de> IntoDeserializer<'de> for Wanted<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Wanted<'_> {
    type Error = Error;

    /// Only what may be written in several ways asks for anything.
    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Secret)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_str<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Text)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        self.is(Kind::Text)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::List)
    }

    fn deserialize_map<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Table)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Plain)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Plain)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Plain)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        self.is(Kind::Plain)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u128 f32 f64 char bytes byte_buf unit unit_struct newtype_struct
        tuple tuple_struct struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const PAGE: &str = include_str!("../../docs/configuration.md");

    #[test]
    fn a_key_is_known_with_what_it_holds() {
        for (path, expected) in [
            (&["database", "url"][..], Some(Kind::Secret)),
            (&["relay", "listen"], Some(Kind::Plain)),
            (&["relay", "batch_size"], Some(Kind::Plain)),
            (&["admin", "listen"], Some(Kind::Text)),
            (&["telemetry", "otlp_endpoint"], Some(Kind::Text)),
            (&["rails", "x", "ordering"], Some(Kind::Text)),
            (&["rails", "x", "schema"], Some(Kind::Text)),
            (&["rails", "x", "ca_file"], Some(Kind::Text)),
            (&["rails", "x", "topics"], Some(Kind::List)),
            (&["rails", "x", "signing_secrets"], Some(Kind::List)),
            (&["rails", "x", "bearer_token"], Some(Kind::Secret)),
            (&["rails", "x", "requests_per_second"], Some(Kind::Plain)),
            (&["rails", "x", "codes"], Some(Kind::Table)),
            (&["rails", "x", "properties", "linger.ms"], Some(Kind::Text)),
            (&["rails", "x", "topic", "y"], None),
            (&["relay", "nothing"], None),
        ] {
            assert_eq!(kind(path), expected, "{path:?}");
        }
    }

    fn names(prefix: &str, keys: Keys) -> BTreeSet<String> {
        keys.into_iter().map(|(name, _)| format!("{prefix}{name}")).collect()
    }

    /// The names in the first column of the tables under a heading that starts so; those before any
    /// heading for none.
    fn documented(heading: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let mut under = "";
        for line in PAGE.lines() {
            under = line.strip_prefix("## ").unwrap_or(under);
            let Some(row) = line.strip_prefix("| `") else { continue };
            if under.is_empty() == heading.is_empty() && under.starts_with(heading) {
                let column = row.split(" | ").next().unwrap();
                names.extend(column.split("`, `").map(|name| name.trim_matches('`').to_owned()));
            }
        }
        names
    }

    #[test]
    fn the_page_of_the_documentation_names_exactly_the_keys_that_there_are() {
        let tables = [
            names("database.", of::<DatabaseConfig>()),
            names("relay.", of::<RelayConfig>()),
            names("admin.", of::<AdminConfig>()),
            names("telemetry.", of::<TelemetryConfig>()),
            names("dlq.", of::<DlqConfig>()),
        ];
        let top: BTreeSet<String> = tables.into_iter().flatten().collect();
        assert_eq!(documented(""), top);
        let common = documented("Every rail");
        for (heading, keys) in [
            ("`kind = \"kafka\"`", of::<KafkaRailConfig>()),
            ("`kind = \"http\"`", of::<HttpRailConfig>()),
        ] {
            let own = documented(heading);
            assert!(own.is_disjoint(&common), "{own:?}");
            assert_eq!(&own | &common, names("", keys), "{heading}");
        }
    }
}
