//! `trestle doctor` on a rail that delivers exactly once.

use std::time::{Duration, Instant};

use crate::doctor_scene::{Findings, Patient};
use crate::support::acls::carry_out;
use crate::support::{Database, PAUPER, SecuredKafka, Topic};

/// Whatever takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A bridge with two shards, on a topic and with a register of these names.
async fn patient(database: &Database, topic: &Topic, register: &Topic) -> Patient {
    Patient::bridge(database, topic, &Topic::unmade()).await.and(&format!(
        "delivery = \"exactly_once\"\nshards = 2\nregister_topic = \"{}\"\ntransactional_id_prefix = \"{}\"\n",
        register.name(),
        topic.name()
    ))
}

#[tokio::test]
async fn transactions_and_the_register_are_looked_at() {
    let (database, topic, mut register) =
        (Database::new().await, Topic::new().await, Topic::unmade());
    let patient = patient(&database, &topic, &register).await;
    let check = format!("rails.kafka register {}", register.name());

    let findings = patient.examined_at_all();
    assert_eq!(findings.verdict("rails.kafka transactions"), "ok", "{:?}", findings.failed());
    let id = format!("a producer is let in as {}.kafka.doctor", topic.name());
    assert_eq!(findings.found("rails.kafka transactions"), id);
    assert_eq!(findings.verdict(&check), "warn");
    assert!(
        findings
            .mend(&check)
            .contains("--partitions 2 --replication-factor 3 --config cleanup.policy=compact")
    );

    register.make(1).await;
    let findings = patient.examined_at_all();
    let told = findings.all(&check);
    assert_eq!(findings.verdict(&check), "fail");
    for wrong in ["1 partitions for 2 shards", "cleanup.policy is delete"] {
        assert!(told.contains(wrong), "{told}");
    }
    findings.each_wrong_has_its_remedy();

    register.alter("cleanup.policy", "compact").await;
    let told = patient.examined_at_all().all(&check);
    assert!(!told.contains("cleanup.policy"), "{told}");
}

#[tokio::test]
async fn what_only_such_a_rail_calls_is_among_the_rights() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let revoke = "REVOKE EXECUTE ON FUNCTION outbox.lease_outbox_shards(text, text, integer) FROM symphony_executor";
    database.connect().await.batch_execute(revoke).await.unwrap();
    let findings = patient(&database, &topic, &Topic::unmade()).await.examined(1);
    assert!(findings.found("rights enough").contains("may not call lease_outbox_shards"));
    let plain = Patient::bridge(&database, &topic, &Topic::unmade()).await.examined_at_all();
    assert_eq!(plain.verdict("rights enough"), "ok");
}

/// The doctor fences nobody off: whoever asks twice has asked with the same id, and a shard has another.
#[tokio::test]
async fn a_broker_that_allows_shorter_transactions_is_told() {
    let (database, topic, register) = (Database::new().await, Topic::new().await, Topic::unmade());
    // The broker's own limit is 15 minutes.
    let patient = patient(&database, &topic, &register).await.and(
        "delivery_timeout_seconds = 1000\n[relay]\nlease_seconds = 1200\nshutdown_seconds = 1200\nstalled_seconds = 1200\n",
    );
    let findings = patient.examined_at_all();
    let found = findings.found("rails.kafka transactions");
    assert!(found.contains("KAFKA_INVALID_TRANSACTION_TIMEOUT"), "{found}");
    let mend = findings.mend("rails.kafka transactions");
    assert!(mend.contains("transaction.max.timeout.ms of the brokers at least 1005000"), "{mend}");
}

fn give(line: &str, brokers: &str) {
    let (line, brokers) = (line.to_owned(), brokers.to_owned());
    std::thread::spawn(move || carry_out(&line, PAUPER, &brokers)).join().unwrap();
}

/// What the doctor finds once the broker has taken notice of an ACL, which it does in a moment.
fn once(patient: &Patient, noticed: impl Fn(&Findings) -> bool) -> Findings {
    let until = Instant::now() + PATIENCE;
    loop {
        let findings = patient.examined_at_all();
        if noticed(&findings) {
            return findings;
        }
        assert!(Instant::now() < until, "never noticed: {:?}", findings.failed());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_for_transactions_are_given_by_the_lines_that_are_shown() {
    let kafka = SecuredKafka::shared().await;
    let open = kafka.open();
    let (topic, mut register) = (Topic::on(&open).await, Topic::unmade_on(&open));
    register.make(2).await;
    register.alter("cleanup.policy", "compact").await;
    let access = kafka.by_password("SCRAM-SHA-512").with("sasl.username", PAUPER);
    let database = Database::new().await;
    let patient = patient(&database, &topic, &register).await;
    let patient = patient.and(&format!("brokers = \"{}\"\n{}", access.brokers, access.toml()));
    let (of_topic, on_topic, of_register) = (
        format!("rails.kafka topic {}", topic.name()),
        format!("rails.kafka rights on {}", topic.name()),
        format!("rails.kafka register {}", register.name()),
    );

    let findings = patient.examined(1);
    findings.each_wrong_has_its_remedy();
    let found = findings.found("rails.kafka transactions");
    assert!(found.contains("TRANSACTIONAL_ID_AUTHORIZATION_FAILED"), "{found}");
    assert!(findings.found(&of_register).contains("TOPIC_AUTHORIZATION_FAILED"));
    for check in ["rails.kafka transactions", &of_register, &of_topic] {
        give(findings.mend(check), &open);
    }

    // Who may write to a topic need not be able to read it.
    let findings = once(&patient, |findings| {
        findings.has(&on_topic) && findings.verdict("rails.kafka transactions") == "ok"
    });
    let found = findings.found(&on_topic);
    assert!(found.starts_with("may not Read: what became of"), "{found}");
    give(findings.mend(&on_topic), &open);
    let findings = once(&patient, |findings| findings.verdict(&on_topic) == "ok");
    assert_ne!(findings.verdict(&of_register), "fail", "{}", findings.all(&of_register));
}
