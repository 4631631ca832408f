//! `trestle doctor` on a broker that lets a user do what its ACLs say.

use std::time::{Duration, Instant};

use crate::doctor_scene::{Findings, Patient};
use crate::support::acls::carry_out;
use crate::support::{Database, PAUPER, SecuredKafka, Topic};

/// Whatever takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

struct Scene {
    brokers: String,
    patient: Patient,
    topic: Topic,
    dead: Topic,
    _database: Database,
}

impl Scene {
    /// A bridge whose user has no right on the broker.
    async fn new() -> Self {
        let kafka = SecuredKafka::shared().await;
        let (topic, dead) = (Topic::on(&kafka.open()).await, Topic::on(&kafka.open()).await);
        let access = kafka.by_password("SCRAM-SHA-512").with("sasl.username", PAUPER);
        let database = Database::new().await;
        let patient = Patient::bridge(&database, &topic, &dead).await;
        let patient = patient.and(&format!("brokers = \"{}\"\n{}", access.brokers, access.toml()));
        Self { brokers: kafka.open(), patient, topic, dead, _database: database }
    }

    fn give(&self, line: &str) {
        let (line, brokers) = (line.to_owned(), self.brokers.clone());
        let given = std::thread::spawn(move || carry_out(&line, PAUPER, &brokers));
        given.join().unwrap();
    }

    /// What the doctor finds once the broker has taken notice of an ACL, which it does in a moment.
    fn once(&self, noticed: impl Fn(&Findings) -> bool) -> Findings {
        let until = Instant::now() + PATIENCE;
        loop {
            let findings = self.patient.examined_at_all();
            if noticed(&findings) {
                findings.each_wrong_has_its_remedy();
                return findings;
            }
            assert!(Instant::now() < until, "never noticed: {:?}", findings.failed());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_on_a_topic_are_given_by_the_lines_that_are_shown() {
    let scene = Scene::new().await;
    let of = |what: &str, topic: &Topic| format!("rails.kafka {what} {}", topic.name());
    let (topic, dead) = (of("topic", &scene.topic), of("topic", &scene.dead));
    let (on_topic, on_dead) = (of("rights on", &scene.topic), of("rights on", &scene.dead));

    let findings = scene.patient.examined(1);
    assert_eq!(findings.failed(), ["rails.kafka rights", &topic, &dead]);
    assert!(findings.found("rails.kafka rights").contains("CLUSTER_AUTHORIZATION_FAILED"));
    assert!(findings.found(&topic).contains("KAFKA_TOPIC_AUTHORIZATION_FAILED"));

    // To see a topic is not to write to it.
    let seen = format!(
        "kafka-acls.sh --bootstrap-server b --add --allow-principal User:… --operation Describe --operation Delete --topic {}",
        scene.topic.name()
    );
    scene.give(&seen);
    let findings = scene.once(|findings| findings.has(&on_topic));
    assert_eq!(findings.failed(), ["rails.kafka rights", &on_topic, &dead]);
    assert_eq!(findings.found(&on_topic), "may not Write: nothing can be delivered to it");

    scene.give(findings.mend(&on_topic));
    scene.give(findings.mend(&dead));
    let findings = scene.once(|findings| findings.failed().is_empty());
    assert_eq!(findings.verdict("rails.kafka rights"), "ok");
    assert_eq!(findings.found(&on_topic), "may also Delete, which no bridge does");
    assert_eq!(findings.verdict(&on_topic), "warn");
    assert!(findings.mend(&on_topic).contains(" --remove "));
    assert_eq!(findings.found(&on_dead), "may Write, Describe");
    // The settings of the first may still not be read, those of the other may.
    assert!(findings.all(&topic).contains("its settings may not be read"));
    assert!(!findings.all(&dead).contains("its settings may not be read"));
}

#[tokio::test]
async fn whoever_may_do_anything_is_no_alarm() {
    let kafka = SecuredKafka::shared().await;
    let (topic, dead) = (Topic::on(&kafka.open()).await, Topic::on(&kafka.open()).await);
    let database = Database::new().await;
    let patient = Patient::bridge(&database, &topic, &dead).await;
    let findings = patient.and(&format!("brokers = \"{}\"\n", kafka.open())).examined(0);
    let check = format!("rails.kafka rights on {}", topic.name());
    assert_eq!(findings.verdict(&check), "ok");
    assert_eq!(findings.found(&check), "anything: no ACL restrains it, or this is a superuser");
}
