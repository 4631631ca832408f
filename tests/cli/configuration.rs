//! Wrong use and wrong configuration exit with 2, before anything is connected to.

use std::fs;

use crate::support::trestle;

fn refused(url: &str, arguments: &[&str]) -> String {
    let refused = trestle(url, arguments).assert().code(2);
    String::from_utf8_lossy(&refused.get_output().stderr).into_owned()
}

fn refused_file(contents: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trestle.toml");
    fs::write(&file, contents).unwrap();
    refused("", &["migrate", "--config", file.to_str().unwrap()])
}

#[test]
fn an_unknown_key_is_refused_and_the_nearest_one_named() {
    let message = refused_file("[database]\nurll = \"postgres://u:hunter2@h/d\"\n");
    assert!(message.contains("`database.urll` in trestle.toml"), "{message}");
    assert!(message.contains("did you mean `database.url`?"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
    let message = refused_file("[databse]\n");
    assert!(message.contains("did you mean `database`?"), "{message}");
}

#[test]
fn a_mistyped_variable_is_refused_like_a_key() {
    let mut command = trestle("postgres://h/d", &["migrate"]);
    let refused = command.env("TRESTLE_DATABASE__URLL", "x").assert().code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("`database.urll` in the environment"), "{message}");
}

#[test]
fn the_variables_that_are_no_configuration_are_not_taken_for_keys() {
    let mut command = trestle("postgres://127.0.0.1:1/d", &["migrate"]);
    let failed = command.env("TRESTLE_LOG", "debug").assert().code(1);
    let message = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(message.contains("127.0.0.1:1/d"), "{message}");
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_with_its_key() {
    let rail = "[rails.sepa]\nkind = \"kafka\"\nbrokers = \"h:1\"\ntopic = \"t\"\n";
    let message = refused_file(&format!("{rail}properties.\"linger.ms\" = [5]\n"));
    assert!(message.contains("`rails.sepa.properties"), "{message}");
    assert!(message.contains("a whole number"), "{message}");
    // Numbers and switches need no quotes: nothing is wrong with this file but what is missing.
    let properties = "properties.\"linger.ms\" = 5\nproperties.\"log.thread.name\" = true\n";
    let message = refused_file(&format!("{rail}{properties}"));
    assert!(message.contains("no database is configured"), "{message}");
}

#[test]
fn what_does_not_fit_together_is_refused_with_its_key() {
    let kafka = "[rails.sepa]\nkind = \"kafka\"\nbrokers = \"h:1\"\ntopic = \"t\"\n";
    let http = "[rails.bank]\nkind = \"http\"\nurl = \"https://bank.example\"\n";
    let dlq = |template: &str, topic: &str| {
        let kafka = kafka.replace("\"t\"", &format!("\"{template}\""));
        format!("{kafka}[dlq]\nrail = \"sepa\"\ntopic = \"{topic}\"\n")
    };
    let tenants = format!("pay.{}", uuid::Uuid::nil());
    for (toml, words) in [
        (dlq("t", "t"), "`dlq.topic` is a topic of rails.sepa"),
        (dlq("pay.{rail_type}", "pay.sepa"), "`dlq.topic` is a topic of rails.sepa"),
        (dlq("pay.{tenant}", &tenants), "`dlq.topic` is a topic of rails.sepa"),
        (format!("{http}timeout_seconds = 20\n[relay]\nstalled_seconds = 20\n"), "relay.stalled_seconds must be at least 25, not 20"),
        (format!("{kafka}[relay]\nstalled_seconds = 5\n"), "`relay.stalled_seconds` must be from 10 to 3600"),
        (kafka.replace("h:1", "h:1,,k:1"), "`rails.sepa.brokers` must be host:9092"),
        (format!("{kafka}source = \"\"\n"), "`rails.sepa.source` is empty"),
        (format!("{http}bearer_token = \"\"\n"), "`rails.bank.bearer_token` is empty"),
        (format!("{http}idempotency_ttl_seconds = 30\n"), "`rails.bank.idempotency_ttl_seconds` must be more"),
        (format!("{http}timeout_seconds = 56\n[relay]\nlease_seconds = 60\n"), "a lease of 60 s (relay.lease_seconds) covers at most 55 s"),
        (format!("{kafka}delivery_timeout_seconds = 20\n[relay]\nlease_seconds = 20\n"), "`rails.sepa.delivery_timeout_seconds` is 20 s"),
        (format!("{http}[relay]\nshutdown_seconds = 30\n"), "so relay.shutdown_seconds must be at least 35"),
        (format!("{kafka}[dlq]\nrail = \"sepa\"\n"), "`dlq.topic` is missing"),
        (format!("{http}[dlq]\nrail = \"bank\"\ntopic = \"dead\"\n"), "`dlq.rail` is \"bank\", which is neither a Kafka rail"),
        ("[telemetry]\notlp_endpiont = \"x\"\n".to_owned(), "did you mean `telemetry.otlp_endpoint`?"),
        (kafka.replace("rails.sepa", "rails.\"a.b\"").replace("topic =", "topik ="), "did you mean `rails.a.b.topic`?"),
        (kafka.replace("rails.sepa", "rails.\"A.b\""), "`rails.A.b` is not a rail name"),
        (
            "[database]\nurl = \"postgres://h/d\"\nlisten_url = \"postgres://u:hunter2@h/d?sslmode=x\"\n".to_owned(),
            "`database.listen_url` is refused",
        ),
    ] {
        let message = refused_file(&toml);
        assert!(message.contains(words), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn a_broken_file_is_refused_without_its_contents() {
    for contents in [
        "[database]\nurl = \"postgres://u:hunter2@h/d\n",
        "database = \"postgres://u:hunter2@h/d\"",
    ] {
        let message = refused_file(contents);
        assert!(message.contains("trestle.toml"), "{message}");
        assert!(!message.contains("hunter2"), "{message}");
    }
}

#[test]
fn a_configuration_file_that_does_not_exist_is_refused() {
    let message = refused("postgres://h/d", &["migrate", "--config", "no-such.toml"]);
    assert!(message.contains("no-such.toml does not exist"), "{message}");
}

#[test]
fn a_missing_database_is_explained() {
    let message = refused("", &["migrate"]);
    assert!(message.contains("DATABASE_URL"), "{message}");
}

#[test]
fn tls_that_cannot_be_had_is_refused_before_anything_is_connected_to() {
    let message = refused("postgres://u:hunter2@h/d?sslmode=verify-full", &["migrate"]);
    assert!(message.contains("`sslrootcert` is missing, which `sslmode` needs"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn a_server_that_cannot_be_reached_is_a_failure_that_hides_the_password() {
    let url = "postgres://u:hunter2@127.0.0.1:1/d";
    let failed = trestle(url, &["migrate"]).assert().code(1);
    let message = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(message.contains("127.0.0.1:1/d"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn the_file_the_url_and_the_variables_are_laid_over_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trestle.toml");
    let secret = folder.path().join("secret");
    fs::write(&file, "[database]\nurl = \"postgres://127.0.0.1:1/from_file\"\n").unwrap();
    fs::write(&secret, "postgres://127.0.0.1:1/from_secret\n").unwrap();
    let reached = |url: &str, variable: Option<(&str, &str)>| {
        let mut command = trestle(url, &["migrate", "--config", file.to_str().unwrap()]);
        command.envs(variable);
        let failed = command.assert().code(1);
        String::from_utf8_lossy(&failed.get_output().stderr).into_owned()
    };
    let by_url = "postgres://127.0.0.1:1/from_url";
    let own = ("TRESTLE_DATABASE__URL", "postgres://127.0.0.1:1/from_own");
    let own_file = ("TRESTLE_DATABASE__URL_FILE", secret.to_str().unwrap());
    assert!(reached("", None).contains("from_file"));
    assert!(reached(by_url, None).contains("from_url"));
    assert!(reached(by_url, Some(own)).contains("from_own"));
    assert!(reached(by_url, Some(own_file)).contains("from_secret"));
}
