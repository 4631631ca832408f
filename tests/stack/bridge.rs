//! The bridge of `make up`: its configuration, without starting it.

use std::path::Path;
use std::process::{Command, Output};

use crate::project::{default_port, path, read};

/// A command that reads its configuration and then lacks a database.
fn start_with(configuration: &Path) -> Output {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("trestle"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TRESTLE_") {
            command.env_remove(name);
        }
    }
    command
        .arg("--config")
        .arg(configuration)
        .arg("run")
        .env_remove("DATABASE_URL")
        .env_remove("DATABASE_URL_FILE")
        .env("KAFKA_BROKERS", "127.0.0.1:9")
        .output()
        .unwrap()
}

#[test]
fn trestle_accepts_its_configuration() {
    let said = String::from_utf8(start_with(&path("stack/trestle.toml")).stderr).unwrap();
    assert!(said.contains("no database is configured"), "{said}");
}

#[test]
fn a_key_that_trestle_does_not_know_would_be_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trestle.toml");
    std::fs::write(&file, read("stack/trestle.toml").replace("topic = ", "topik = ")).unwrap();
    let said = String::from_utf8(start_with(&file).stderr).unwrap();
    assert!(said.contains("topik"), "{said}");
}

#[test]
fn its_ports_are_the_defaults_of_the_scripts() {
    let configuration = read("stack/trestle.toml");
    let admin = format!("listen = \"127.0.0.1:{}\"", default_port("ADMIN_PORT"));
    let bank = format!("url = \"http://127.0.0.1:{}/payments\"", default_port("BANK_PORT"));
    for line in [admin, bank] {
        assert!(configuration.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn the_demo_makes_and_reads_the_topics_that_it_names() {
    let demo = read("examples/demo/topics.rs");
    let configuration = read("stack/trestle.toml");
    let topics: Vec<&str> =
        configuration.lines().filter_map(|line| line.strip_prefix("topic = ")).collect();
    assert_eq!(topics.len(), 2);
    for topic in topics {
        assert!(demo.contains(&format!(": &str = {topic};")), "{topic}");
    }
}
