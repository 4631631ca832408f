//! What is known of a connection: from the connection string, then from libpq's variables.

use std::collections::BTreeMap;

use tokio_postgres::Config;

use super::{string, variables};

const WHOLE_SECONDS: &str = "must be a whole number of seconds";

/// What else may be said, and how; what has no words may be any text.
const KEYS: [(&str, &str); 18] = [
    ("user", ""),
    ("password", ""),
    ("dbname", ""),
    ("options", ""),
    ("application_name", ""),
    ("host", ""),
    ("hostaddr", "must be an IP address, or several with commas between"),
    ("port", "must be a number from 1 to 65535, or one for each host with commas between"),
    ("connect_timeout", WHOLE_SECONDS),
    ("tcp_user_timeout", WHOLE_SECONDS),
    ("keepalives", "must be 0 or 1"),
    ("keepalives_idle", WHOLE_SECONDS),
    ("keepalives_interval", WHOLE_SECONDS),
    ("keepalives_retries", "must be a whole number"),
    (
        "target_session_attrs",
        "must be any, read-write or read-only: write read-write for primary, and read-only for standby",
    ),
    ("channel_binding", "must be disable, prefer or require"),
    ("load_balance_hosts", "must be disable or random"),
    ("sslnegotiation", "must be postgres or direct"),
];

/// Values by libpq's keys.
pub(super) struct Settings(BTreeMap<String, Setting>);

pub(super) struct Setting {
    pub(super) value: String,
    /// The key, and the variable where the value is from one: for messages.
    pub(super) name: String,
}

impl Settings {
    pub(super) fn read(
        text: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, String> {
        variables::check(&variable)?;
        let mut settings = BTreeMap::new();
        for (key, value) in string::pairs(text)? {
            let key = if key == "keepalives_count" { "keepalives_retries".to_owned() } else { key };
            let name = format!("`{key}`");
            settings.insert(key, Setting { value, name });
        }
        for (key, variable_name) in variables::READ {
            // An address that is written is not looked up under another name.
            let said =
                settings.contains_key(key) || (key == "host" && settings.contains_key("hostaddr"));
            if let Some(value) = variable(variable_name).filter(|_| !said) {
                let name = format!("`{key}` (from {variable_name})");
                settings.insert(key.to_owned(), Setting { value, name });
            }
        }
        Ok(Self(settings))
    }

    pub(super) fn get(&self, key: &str) -> Option<&Setting> {
        self.0.get(key)
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Setting> {
        self.0.remove(key)
    }

    /// All that was not taken.
    pub(super) fn config(mut self) -> Result<Config, String> {
        // A certificate is compared with the name that is connected to, and this is the only one.
        if !self.0.contains_key("host")
            && let Some(Setting { value, name }) = self.0.get("hostaddr")
        {
            let host = Setting { value: value.clone(), name: name.clone() };
            self.0.insert("host".to_owned(), host);
        }
        let mut text = String::new();
        for (key, setting) in &self.0 {
            let Some((key, expected)) = KEYS.iter().find(|(known, _)| known == key) else {
                return Err(unknown(key));
            };
            let value = setting.value.replace('\\', r"\\").replace('\'', r"\'");
            let pair = format!("{key}='{value}' ");
            if pair.parse::<Config>().is_err() {
                return Err(format!("{} {expected}", setting.name));
            }
            text.push_str(&pair);
        }
        // Each was parsed before, and no error of all together could be about one of them.
        text.parse().map_err(|_| "its parts do not fit together".to_owned())
    }
}

/// What does not look like a key may be a piece of the password.
fn unknown(key: &str) -> String {
    let is_word = key.len() <= 32 && key.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    if is_word { format!("unknown key `{key}`") } else { "it has an unknown key".to_owned() }
}
