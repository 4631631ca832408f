//! What of a value may be shown.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::Secret;

pub(super) const REDACTED: &str = "[redacted]";

/// Properties of a library whose texts are no secrets. What is not known here may be one.
const HARMLESS: &[&str] = &[
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "client.id",
    "compression.type",
    "compression.codec",
];

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

pub(super) fn properties<S: Serializer>(
    properties: &BTreeMap<String, Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(properties.iter().map(|(name, value)| (name, property(name, value))))
}

fn property<'a>(name: &str, value: &'a Secret) -> &'a str {
    let plain = value.expose();
    // A password may be a number, so that only those are shown whose name tells a measure.
    let measure = name.ends_with(".ms") || name.ends_with(".bytes") || name.ends_with(".messages");
    let number = measure && plain.parse::<f64>().is_ok();
    let flag = matches!(plain, "true" | "false");
    let file = name.ends_with(".location");
    if number || flag || file || HARMLESS.contains(&name) { plain } else { REDACTED }
}

/// An address without what may be a login or a token in it.
pub(super) fn url<S: Serializer>(url: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&without_secrets(url))
}

pub(super) fn optional_url<S: Serializer>(
    address: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match address {
        Some(address) => url(address, serializer),
        None => serializer.serialize_none(),
    }
}

fn without_secrets(url: &str) -> String {
    let (address, query) = match url.split_once(['?', '#']) {
        Some((address, _)) => (address, format!("?{REDACTED}")),
        None => (url, String::new()),
    };
    let Some((scheme, rest)) = address.split_once("://") else { return REDACTED.to_owned() };
    let host_and_path = match rest.rsplit_once('@') {
        Some((_, after)) => format!("{REDACTED}@{after}"),
        None => rest.to_owned(),
    };
    format!("{scheme}://{host_and_path}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_no_login_and_no_token() {
        for (url, shown) in [
            ("https://bank.example/pay", "https://bank.example/pay"),
            ("https://u:hunter2@bank.example/pay", "https://[redacted]@bank.example/pay"),
            ("https://u:a/hunter2@bank.example/pay", "https://[redacted]@bank.example/pay"),
            ("https://bank.example/pay?token=hunter2", "https://bank.example/pay?[redacted]"),
            ("hunter2", "[redacted]"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }

    #[test]
    fn a_property_is_shown_only_where_it_can_be_no_secret() {
        for (name, value, shown) in [
            ("linger.ms", "5", true),
            ("linger.ms", "hunter2", false),
            ("sasl.password", "1234", false),
            ("sasl.username", "bridge", false),
            ("ssl.key.pem", "-----BEGIN", false),
            ("ssl.ca.location", "/etc/ca.pem", true),
            ("security.protocol", "SSL", true),
            ("some.new.property", "hunter2", false),
            ("log.thread.name", "true", true),
        ] {
            assert_eq!(property(name, &Secret::new(value)) == value, shown, "{name}");
        }
    }
}
