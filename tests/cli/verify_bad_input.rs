//! `trestle verify` where something is not as it should be.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::scene::{run, run_at_all};
use crate::support::acls::carry_out;
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Database, PAUPER, SecuredKafka, Topic, trestle};
use crate::verify_scene::Scene;

/// Whatever takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_topic_or_a_rail_that_is_not_there_is_named() {
    let scene = Scene::new().await;
    let message = scene.verify(&["--topic", "no-such-topic"], 1).await.stderr;
    assert!(message.contains("topic no-such-topic at "), "{message}");
    assert!(message.contains("KAFKA_UNKNOWN_TOPIC_OR_PART"), "{message}");
    let message = scene.verify(&["--topic", "no such topic"], 2).await.stderr;
    assert!(message.contains("`--topic` is no name of a topic"), "{message}");
    scene.configure("[rails.bank]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\n");
    for (rail, words) in [
        ("bank", "is an HTTP rail: it has no topic"),
        ("sepa", "is not configured: there is bank, kafka"),
        ("dlq", "is not configured"),
    ] {
        let message = scene.verify(&["--rail", rail], 2).await.stderr;
        assert!(message.contains(words), "{message}");
    }
    scene.configure("[rails.other]\nkind = \"kafka\"\ntopic = \"pay.{tenant}\"\n");
    let message = scene.verify(&[], 2).await.stderr;
    assert!(message.contains("--rail is needed: there are kafka, other"), "{message}");
    let message = scene.verify(&["--rail", "other"], 1).await.stderr;
    assert!(message.contains("names no topic to which a row of it was delivered"), "{message}");
    let message = run(&scene.database.url(), &["verify"], 2).stderr;
    assert!(message.contains("no Kafka rail is configured"), "{message}");
}

#[tokio::test]
async fn a_database_that_is_empty_older_newer_or_not_ours_to_read_is_refused() {
    let scene = Scene::new().await;
    let verify = |url: &str| run(url, &["--config", &scene.file(), "verify"], 1).stderr;
    let empty = Database::empty().await;
    assert!(verify(&empty.url()).contains("run `trestle migrate`"));
    let url = scene.database.url_as("symphony_executor").await;
    assert!(verify(&url).contains("lacks a right"));
    for (version, expected) in [("0.0.1", "run `trestle migrate`"), ("99.1.2", "trestle 99.1.2")] {
        let change = "UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = $1";
        scene.client.execute(change, &[&version]).await.unwrap();
        let message = verify(&scene.database.url());
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test]
async fn a_broker_that_cannot_be_reached_is_a_failure_with_its_reason() {
    let scene = Scene::new().await;
    scene.configure("brokers = \"127.0.0.1:1\"\n");
    let message = scene.verify(&[], 1).await.stderr;
    assert!(message.contains("at 127.0.0.1:1 cannot be read: KAFKA_TRANSPORT"), "{message}");
    assert!(message.contains("Connection refused"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_needs_read_on_the_topic_and_no_group() {
    let kafka = SecuredKafka::shared().await;
    let scene = Scene::of(Topic::on(&kafka.open()).await).await;
    scene.configure(&format!("brokers = \"{}\"\n", kafka.open()));
    scene.deliver(&["alice"]).await;
    let access = kafka.by_password("SCRAM-SHA-512").with("sasl.username", PAUPER);
    scene.configure(&format!("brokers = \"{}\"\n{}", access.brokers, access.toml()));
    let message = scene.verify(&[], 1).await.stderr;
    assert!(message.contains("KAFKA_TOPIC_AUTHORIZATION_FAILED"), "{message}");
    assert!(!message.contains("hunter2"), "{message}");
    let line = format!(
        "kafka-acls.sh --bootstrap-server b --add --allow-principal User:… --operation Read --topic {}",
        scene.topic.name()
    );
    let brokers = kafka.open();
    tokio::task::spawn_blocking(move || carry_out(&line, PAUPER, &brokers)).await.unwrap();
    // The broker takes notice in a moment.
    let url = scene.database.url_as("symphony_auditor").await;
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let (run, code) = run_at_all(&url, &["--config", &scene.file(), "verify"]);
        if code == 0 {
            break assert!(run.stdout.contains("Each is there once, in order."), "{}", run.stdout);
        }
        assert!(Instant::now() < patience, "{}", run.stderr);
    }
}

#[tokio::test]
async fn a_broker_that_goes_away_while_the_topic_is_read_is_a_failure() {
    let scene = Scene::new().await;
    scene.deliver(&["alice"]).await;
    let proxy = Proxy::to_kafka();
    let config = trestle::config::load(Some(std::path::Path::new(&scene.file()))).unwrap();
    let Some(trestle::config::RailConfig::Kafka(kafka)) = config.rails.get("kafka") else {
        panic!("a Kafka rail")
    };
    let mut kafka = kafka.clone();
    kafka.brokers = Some(proxy.address().to_owned());
    let topic = scene.topic.name().to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let reader = trestle::rails::kafka::Reader::open("kafka", &kafka, &topic, None).unwrap();
        proxy.set(Mode::TurnAway);
        proxy.cut();
        reader.read(|_| {}).unwrap_err().to_string()
    });
    let message = read.await.unwrap();
    assert!(message.contains("fell silent after 0 records"), "{message}");
}

#[tokio::test]
async fn a_database_that_goes_away_while_the_topic_is_read_is_a_failure() {
    let scene = Scene::new().await;
    scene.deliver(&["alice"]).await;
    let proxy = Proxy::to_kafka();
    proxy.set(Mode::Hold);
    let child = Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
        .args(["--config", &scene.file(), "verify"])
        .env("DATABASE_URL", scene.database.url())
        .env("KAFKA_BROKERS", proxy.address())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has asked for the time when it goes on to the broker.
    let end = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity \
        WHERE datname = current_database() AND application_name = 'trestle' \
          AND state = 'idle' AND query LIKE '%clock_timestamp%'";
    let until = Instant::now() + PATIENCE;
    while scene.client.query_one(end, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(Instant::now() < until, "it has not asked the database");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    proxy.set(Mode::Pass);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("connection to the database was lost"), "{message}");
}

#[tokio::test]
async fn a_reader_that_is_gone_does_not_change_the_verdict() {
    let scene = Scene::new().await;
    scene.deliver(&["alice"]).await;
    let verdict = || {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
            .args(["--config", &scene.file(), "verify"])
            .env("DATABASE_URL", scene.database.url())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait().unwrap().code()
    };
    assert_eq!(verdict(), Some(0));
    scene.topic.produce(&[("mallory", "x")]).await;
    assert_eq!(verdict(), Some(1));
    trestle("", &["verify", "--json", "--limit", "1"]).assert().code(2);
}
