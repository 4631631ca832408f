//! `trestle config`, and what it shows of how the sources are laid over each other.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::trestle;

const FILE: &str = r#"
[database]
url = "postgres://u:hunter2@127.0.0.1:1/from_file?sslmode=disable"

[relay]
batch_size = 7

[rails."a.b"]
kind = "kafka"
topic = "one"

[rails."a.b".properties]
"linger.ms" = 5
"sasl.password" = "hunter2"

[rails.bank]
kind = "http"
url = "https://bank.example/pay?token=hunter2"
signing_secrets = ["whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg=="]
codes = { HTTP_500 = "unavailable" }
"#;

struct Scene {
    folder: TempDir,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("trestle.toml"), FILE).unwrap();
        Self { folder }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn shown(&self, arguments: &[&str], variables: &[(&str, &str)]) -> String {
        let file = self.folder.path().join("trestle.toml");
        let mut command = trestle("", &[&["config"], arguments].concat());
        command
            .arg("--config")
            .arg(file)
            .env_remove("KAFKA_BROKERS")
            .envs(variables.iter().copied());
        let done = command.assert().success();
        let shown = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
        assert!(!shown.contains("hunter2") && !shown.contains("aHVudGVyMg"), "{shown}");
        shown
    }

    /// What is said of a configuration that is wrong.
    fn refused(&self, variables: &[(&str, &str)]) -> String {
        let file = self.folder.path().join("trestle.toml");
        let mut command = trestle("", &["config", "--config", file.to_str().unwrap()]);
        let refused = command.envs([BROKERS]).envs(variables.iter().copied()).assert().code(2);
        let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        assert!(!message.contains("hunter2"), "{message}");
        message
    }

    /// A value, where it comes from, and the name of that.
    fn value(&self, key: &str, variables: &[(&str, &str)]) -> (Value, String, Value) {
        let shown: Value = serde_json::from_str(&self.shown(&["--json"], variables)).unwrap();
        assert_eq!(shown["version"], 1);
        let values = shown["values"].as_array().unwrap();
        let found = values.iter().find(|entry| entry["key"] == key);
        let entry = found.unwrap_or_else(|| panic!("no {key} in {shown}"));
        let from = entry["from"].as_str().unwrap().to_owned();
        (entry["value"].clone(), from, entry["name"].clone())
    }
}

const BROKERS: (&str, &str) = ("KAFKA_BROKERS", "broker:9092");

#[test]
fn every_value_is_shown_with_where_it_comes_from_and_no_secret() {
    let scene = Scene::new();
    let text = scene.shown(&[], &[BROKERS, ("TRESTLE_RELAY__POLL_MS", "900")]);
    let row = |key: &str| {
        let line = text.lines().map(str::trim).find(|line| line.starts_with(&format!("{key} ")));
        let line = line.unwrap_or_else(|| panic!("no {key} in\n{text}"));
        line.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("relay.lease_seconds"), ["60", "default"]);
    assert_eq!(row("relay.poll_ms"), ["900", "TRESTLE_RELAY__POLL_MS"]);
    assert_eq!(row("rails.a.b.brokers"), ["broker:9092", "KAFKA_BROKERS"]);
    assert_eq!(row("database.url")[0], "postgres://[redacted]@127.0.0.1:1/from_file");
    for (key, value) in [
        ("relay.batch_size", "7"),
        ("rails.a.b.topic", "one"),
        ("rails.a.b.properties.linger.ms", "5"),
        ("rails.a.b.properties.sasl.password", "[redacted]"),
        ("rails.bank.url", "https://bank.example/pay?[redacted]"),
        ("rails.bank.signing_secrets", "[\"[redacted]\"]"),
        ("rails.bank.codes.HTTP_500", "unavailable"),
    ] {
        let row = row(key);
        assert_eq!(row[0], value);
        assert!(row[1].ends_with("trestle.toml"), "{row:?}");
    }
}

#[test]
fn a_text_in_a_variable_stays_what_it_is() {
    let scene = Scene::new();
    for text in ["00123", "true", "1e9"] {
        let variable = ("TRESTLE_RAILS__BANK__SOURCE", text);
        let (value, from, name) = scene.value("rails.bank.source", &[BROKERS, variable]);
        assert_eq!((value, from.as_str()), (text.into(), "environment"));
        assert_eq!(name, "TRESTLE_RAILS__BANK__SOURCE");
    }
    let topics = ("TRESTLE_RAILS__A.B__TOPICS", "007,two");
    let (value, _, _) = scene.value("rails.a.b.topics", &[BROKERS, topics]);
    assert_eq!(value, serde_json::json!(["007", "two"]));
    let property = ("TRESTLE_RAILS__A.B__PROPERTIES__LINGER_MS", "9");
    let (value, _, _) = scene.value("rails.a.b.properties.linger.ms", &[BROKERS, property]);
    assert_eq!(value, "9");
}

#[test]
fn a_secret_may_be_in_a_file_that_a_variable_names() {
    let scene = Scene::new();
    let token = scene.write("token", "hunter2\n");
    let variable = ("TRESTLE_RAILS__BANK__BEARER_TOKEN_FILE", token.as_str());
    let (value, _, name) = scene.value("rails.bank.bearer_token", &[BROKERS, variable]);
    assert_eq!((value, name), ("[redacted]".into(), variable.0.into()));
    let url = scene.write("url", "postgres://u:hunter2@127.0.0.1:1/from_secret?sslmode=disable\n");
    for name in ["DATABASE_URL_FILE", "TRESTLE_DATABASE__URL_FILE"] {
        let (value, _, shown) = scene.value("database.url", &[BROKERS, (name, &url)]);
        assert_eq!(
            (value, shown),
            ("postgres://[redacted]@127.0.0.1:1/from_secret".into(), name.into())
        );
    }
    // The file does not count next to the variable itself.
    let own = ("TRESTLE_DATABASE__URL", "postgres://127.0.0.1:1/from_own");
    let both = [BROKERS, ("TRESTLE_DATABASE__URL_FILE", &url), own];
    assert_eq!(scene.value("database.url", &both).2, "TRESTLE_DATABASE__URL");
}

#[test]
fn properties_and_lists_of_secrets_may_be_in_files_too() {
    let scene = Scene::new();
    let password = scene.write("password", "hunter2\n");
    let variable = ("TRESTLE_RAILS__A.B__PROPERTIES__SASL_PASSWORD_FILE", password.as_str());
    let key = "rails.a.b.properties.sasl.password";
    let (value, _, name) = scene.value(key, &[BROKERS, variable]);
    assert_eq!((value, name), ("[redacted]".into(), variable.0.into()));
    let secret = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg==";
    let secrets = scene.write("secrets", &format!("{secret}\n{secret}\n"));
    let variable = ("TRESTLE_RAILS__BANK__SIGNING_SECRETS_FILE", secrets.as_str());
    let (value, _, name) = scene.value("rails.bank.signing_secrets", &[BROKERS, variable]);
    let redacted = serde_json::json!(["[redacted]", "[redacted]"]);
    assert_eq!((value, name), (redacted, variable.0.into()));
}

#[test]
fn an_empty_file_is_no_secret() {
    let scene = Scene::new();
    let empty = scene.write("empty", "\n");
    let name = "TRESTLE_RAILS__BANK__SIGNING_SECRETS_FILE";
    let message = scene.refused(&[(name, &empty)]);
    assert!(message.contains(&format!("the file that {name} names is empty")), "{message}");
}

#[test]
fn what_a_bridge_would_refuse_of_its_rails_is_wrong() {
    let scene = Scene::new();
    for (name, value, words) in [
        ("TRESTLE_RAILS__BANK__URL", "gopher://x/", "`rails.bank.url` must begin with https://"),
        ("TRESTLE_RAILS__BANK__CA_FILE", "/nowhere.pem", "`rails.bank.ca_file` names /nowhere.pem"),
        ("TRESTLE_RAILS__BANK__SCHEMA", "/nowhere.json", "`rails.bank.schema`"),
        (
            "TRESTLE_RAILS__A.B__PROPERTIES__ACKS",
            "1",
            "`rails.a.b.properties.\"acks\"` is not yours",
        ),
        (
            "TRESTLE_RAILS__A.B__PROPERTIES__SSL_CA_LOCATION",
            "/nowhere",
            "`rails.a.b.properties` are not taken",
        ),
        ("TRESTLE_RAILS__A.B__TOPIC", "no topic", "`rails.a.b.topic`"),
        (
            "TRESTLE_TELEMETRY__OTLP_ENDPOINT",
            "http://u:hunter2@c:4318",
            "`telemetry.otlp_endpoint` must not hold a user",
        ),
    ] {
        let protocol = ("TRESTLE_RAILS__A.B__PROPERTIES__SECURITY_PROTOCOL", "ssl");
        let message = scene.refused(&[protocol, (name, value)]);
        assert!(message.contains(words), "{name}: {message}");
    }
}

#[test]
fn nothing_is_connected_to() {
    let broker = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = broker.local_addr().unwrap().to_string();
    let toml = "[dlq]\nrail = \"a.b\"\ntopic = \"dead\"\n[rails.once]\nkind = \"kafka\"\ntopic = \"two\"\ndelivery = \"exactly_once\"\n";
    let scene = Scene::new();
    fs::write(scene.folder.path().join("trestle.toml"), format!("{FILE}{toml}")).unwrap();
    scene.shown(&[], &[("KAFKA_BROKERS", &address)]);
    broker.set_nonblocking(true).unwrap();
    let came = broker.accept().expect_err("somebody came");
    assert_eq!(came.kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn the_collector_may_come_by_opentelemetrys_own_variable() {
    let scene = Scene::new();
    let standard = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318?token=hunter2");
    let (value, from, name) = scene.value("telemetry.otlp_endpoint", &[BROKERS, standard]);
    assert_eq!((value, from.as_str()), ("http://collector:4318?[redacted]".into(), "environment"));
    assert_eq!(name, standard.0);
    let own = ("TRESTLE_TELEMETRY__OTLP_ENDPOINT", "http://other:4318");
    let (value, _, name) = scene.value("telemetry.otlp_endpoint", &[BROKERS, standard, own]);
    assert_eq!((value, name), (own.1.into(), own.0.into()));
    assert_eq!(scene.value("telemetry.otlp_endpoint", &[BROKERS]).1, "default");
}

#[test]
fn the_variables_of_libpq_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.toml");
    fs::write(&file, "").unwrap();
    let mut command = trestle("", &["config", "--config", file.to_str().unwrap()]);
    command.env("PGHOST", "db.example").env("PGDATABASE", "ledger").env("PGPASSWORD", "hunter2");
    let done = command.assert().success();
    let shown = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    assert!(shown.contains("postgres://[redacted]@db.example:5432/ledger"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}
