//! Keeps the values of secret properties out of what librdkafka says.

use crate::config::KafkaRailConfig;

/// What the names of secret properties contain.
const SECRET_NAMES: &[&str] =
    &["password", "secret", "username", "pem", "oauthbearer.config", "private.key"];
/// A shorter value would turn up in innocent words.
const MIN_LENGTH: usize = 4;

/// The values that must not be shown.
pub(super) struct Redactor(Vec<String>);

impl Redactor {
    pub(super) fn new(config: &KafkaRailConfig) -> Self {
        let secret = |name: &str| SECRET_NAMES.iter().any(|part| name.contains(part));
        let mut values: Vec<String> = config
            .properties
            .iter()
            .filter(|(name, value)| secret(name) && value.expose().len() >= MIN_LENGTH)
            .map(|(_, value)| value.expose().to_owned())
            .collect();
        // A value may contain another: the longest goes first.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    pub(super) fn redact(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, value| text.replace(value, "[redacted]"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::config;
    use super::*;

    #[test]
    fn a_secret_value_is_replaced_wherever_it_stands() {
        let config = config(
            "[properties]\n\"sasl.password\" = \"hunter2\"\n\"sasl.username\" = \"hunter2-user\"\n\"client.id\" = \"bank\"",
        );
        let shown = Redactor::new(&config).redact("bank: hunter2-user failed with hunter2");
        assert_eq!(shown, "bank: [redacted] failed with [redacted]");
    }
}
