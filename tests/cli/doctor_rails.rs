//! `trestle doctor` on brokers and receivers.

use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::doctor_scene::{Findings, Patient};
use crate::support::{Authority, Database, Issued, Topic};

#[tokio::test]
async fn a_missing_topic_and_a_weak_one_are_told() {
    let database = Database::new().await;
    let dead = Topic::with_settings(&[("max.message.bytes", "5000")]).await;
    let patient = Patient::bridge(&database, &Topic::unmade(), &dead).await;
    let findings = patient.examined(1);
    let [missing] = findings.failed()[..] else { panic!("{:?}", findings.failed()) };
    assert!(missing.starts_with("rails.kafka topic trestle-test-"), "{missing}");
    assert!(findings.found(missing).contains("KAFKA_UNKNOWN_TOPIC_OR_PART"));
    assert!(findings.mend(missing).contains("kafka-topics.sh --bootstrap-server"));
    let weak = findings.all(&format!("rails.kafka topic {}", dead.name()));
    for told in ["1 replicas", "larger dead letters arrive without their payload"] {
        assert!(weak.contains(told), "{told}: {weak}");
    }
    let compacted = Topic::with_settings(&[
        ("cleanup.policy", "compact"),
        ("retention.ms", "60000"),
        ("unclean.leader.election.enable", "true"),
    ])
    .await;
    let findings = Patient::bridge(&database, &compacted, &dead).await.examined(0);
    let weak = findings.all(&format!("rails.kafka topic {}", compacted.name()));
    for told in ["compacted", "deleted after 1 min", "unclean.leader.election"] {
        assert!(weak.contains(told), "{told}: {weak}");
    }
    findings.each_wrong_has_its_remedy();
}

#[tokio::test]
async fn a_broker_that_is_not_there_is_told_with_its_reason() {
    let database = Database::new().await;
    let (topic, dead) = (Topic::unmade(), Topic::unmade());
    let patient = Patient::bridge(&database, &topic, &dead).await;
    let findings = patient.and("brokers = \"127.0.0.1:1\"\n").examined(1);
    assert_eq!(findings.failed(), ["rails.kafka brokers"]);
    let found = findings.found("rails.kafka brokers");
    assert!(found.contains("KAFKA_TRANSPORT") && found.contains("Connection refused"), "{found}");
}

/// Shakes hands with whoever comes, and says what it was sent.
async fn receiver(issued: Issued) -> (u16, JoinHandle<usize>) {
    let key = PrivatePkcs8KeyDer::from(issued.key.serialize_der());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![issued.certificate.into()], key.into())
        .unwrap();
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let port = listener.local_addr().unwrap().port();
    let sent = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = acceptor.accept(stream).await else { return 0 };
        stream.read(&mut [0; 100]).await.unwrap_or(0)
    });
    (port, sent)
}

struct Bank {
    authority: Authority,
    folder: TempDir,
    database: Database,
}

impl Bank {
    async fn new() -> Self {
        let (authority, folder) = (Authority::new(), TempDir::new().unwrap());
        std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
        std::fs::write(folder.path().join("foreign.pem"), Authority::new().pem()).unwrap();
        Self { authority, folder, database: Database::new().await }
    }

    /// A receiver with a certificate that ends then, visited by who trusts this authority.
    async fn visited(&self, ends: OffsetDateTime, authority: &str, code: i32) -> Findings {
        let (port, sent) = receiver(self.authority.issue_until("localhost", ends)).await;
        let file = self.folder.path().join(authority);
        let url = format!("https://localhost:{port}/payments");
        let findings = self.examined(&url, &format!("ca_file = {file:?}\n"), code).await;
        assert_eq!(sent.await.unwrap(), 0, "no request is sent");
        findings
    }

    async fn examined(&self, url: &str, more: &str, code: i32) -> Findings {
        let patient = Patient::new(&self.database.url_as("symphony_executor").await);
        let patient =
            patient.and(&format!("[rails.bank]\nkind = \"http\"\nurl = \"{url}\"\n{more}"));
        let findings = tokio::task::spawn_blocking(move || patient.examined(code)).await.unwrap();
        findings.each_wrong_has_its_remedy();
        findings
    }
}

const DAY: Duration = Duration::from_secs(86_400);

#[tokio::test]
async fn a_certificate_is_looked_at_and_no_payment_is_sent() {
    let bank = Bank::new().await;
    let now = OffsetDateTime::now_utc();
    let findings = bank.visited(now + 90 * DAY + DAY / 2, "ca.pem", 0).await;
    assert_eq!(findings.found("rails.bank tls"), "its certificate is trusted, 90 days left");
    let findings = bank.visited(now + 5 * DAY + DAY / 2, "ca.pem", 0).await;
    assert_eq!(findings.verdict("rails.bank tls"), "warn");
    let findings = bank.visited(now - DAY, "ca.pem", 1).await;
    assert_eq!(findings.failed(), ["rails.bank tls"]);
    assert!(findings.found("rails.bank tls").contains("expired"));
    let findings = bank.visited(now + 90 * DAY, "foreign.pem", 1).await;
    assert!(findings.found("rails.bank tls").contains("UnknownIssuer"));
}

#[tokio::test]
async fn a_receiver_that_has_no_address_or_does_not_answer_is_told() {
    let bank = Bank::new().await;
    let findings = bank.examined("https://no-such-host.invalid/payments", "", 1).await;
    assert_eq!(findings.failed(), ["rails.bank receiver"]);
    assert!(findings.found("rails.bank receiver").contains("no-such-host.invalid has no address"));
    let findings = bank.examined("http://127.0.0.1:1/payments", "", 1).await;
    assert!(findings.found("rails.bank receiver").contains("127.0.0.1:1 does not answer"));
}
