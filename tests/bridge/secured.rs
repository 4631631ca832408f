//! A broker that does not let the bridge in: nothing FAILED, nothing counted, no secret in the log.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::outages::nothing_failed_or_counted;
use crate::process::{Bridge, PATIENCE, Setup};
use crate::rows::{all_done, count, each_once, enqueue, wait_for};
use crate::shutdown::NOTHING_LEASED;
use crate::support::proxy::{Mode, Proxy};
use crate::support::{Access, Database, PASSWORD, SecuredKafka, Topic};

const WRONG_PASSWORD: &str = "wrong-hunter2";
/// What is logged when a probe finds that it is something else.
const ANOTHER_REASON: &str = "still unavailable, but for another reason";
/// What is logged when a probe finds that nothing has changed.
const TURNED_AWAY: &str = "the topic cannot be used";
const NEVER_TRIED: &str = "SELECT count(*) = 50 FROM outbox.payment_outbox_pending \
     WHERE attempt_count = 0 AND NOT EXISTS (SELECT FROM outbox.payment_outbox_attempts)";

/// A database with rows in it, and a topic on the secured broker.
struct Scene {
    database: Database,
    topic: Topic,
}

impl Scene {
    async fn new() -> Self {
        let database = Database::new().await;
        enqueue(&database.connect().await, "kafka", 5, 50).await;
        let topic = Topic::on(&SecuredKafka::shared().await.open()).await;
        Self { database, topic }
    }

    /// At its most talkative. The password, where there is one, comes by the environment.
    async fn setup(&self, access: &Access, password: Option<&str>) -> Setup {
        let toml = access.clone().with("debug", "all").toml();
        let setup = Setup::kafka(&self.database, &self.topic).await.and(&toml);
        let setup = setup.env("KAFKA_BROKERS", &access.brokers).env("TRESTLE_LOG", "trace");
        let Some(password) = password else { return setup };
        setup
            .and("properties.\"sasl.password\" = { env = \"KAFKA_PASSWORD\" }\n")
            .env("KAFKA_PASSWORD", password)
    }

    /// The bridge says why, looks again and again, and leaves every row as it was.
    async fn is_turned_away(&self, setup: Setup, reasons: [&str; 2]) {
        let admin = free_address().await;
        let mut bridge = setup.env("TRESTLE_ADMIN__LISTEN", &admin).run();
        bridge.logged("unavailable: ").await;
        // A broker that is slow with its first handshake is told of first, and then why.
        for reason in reasons {
            bridge.logged(reason).await;
        }
        bridge.logged_times(TURNED_AWAY, 2).await;
        breaker_shows(&admin).await;
        bridge.signal("TERM");
        assert!(bridge.ended().await.success(), "{}", bridge.log());
        wait_for(&self.database, NOTHING_LEASED).await;
        wait_for(&self.database, NEVER_TRIED).await;
        tells_no_secret(&bridge);
    }

    async fn gets_in(&self, setup: Setup) {
        let bridge = setup.run();
        all_done(&self.database).await;
        each_once(&self.topic, 50).await;
        assert_eq!(count(&self.database, "DISPATCHED").await, 50);
        nothing_failed_or_counted(&self.database).await;
        tells_no_secret(&bridge);
    }
}

/// Not at 127.0.0.1, where an outgoing connection could be given the same port before the bridge takes it.
pub(crate) async fn free_address() -> String {
    let free = TcpListener::bind("127.0.0.2:0").await.unwrap();
    free.local_addr().unwrap().to_string()
}

/// The bridge looks at its breakers every few seconds, so this asks until the metrics show it.
async fn breaker_shows(admin: &str) {
    let until = Instant::now() + PATIENCE;
    while !metrics(admin).await.contains("rail_breaker_open{rail=\"kafka\"} 1") {
        assert!(Instant::now() < until, "never:\n{}", metrics(admin).await);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

pub(crate) async fn metrics(admin: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn tells_no_secret(bridge: &Bridge) {
    let log = bridge.log();
    assert!(log.contains("librdkafka"), "it says something at all:\n{log}");
    for secret in [PASSWORD, WRONG_PASSWORD, "PRIVATE KEY"] {
        assert!(!log.contains(secret), "{secret:?} is in the log:\n{log}");
    }
}

#[tokio::test]
async fn a_wrong_password_costs_no_row_and_with_the_right_one_all_arrive_in_order() {
    let scene = Scene::new().await;
    let kafka = SecuredKafka::shared().await;
    let access = kafka.by_password("SCRAM-SHA-512").without("sasl.password");
    scene
        .is_turned_away(
            scene.setup(&access, Some(WRONG_PASSWORD)).await,
            ["KAFKA_AUTHENTICATION", "SASL authentication error"],
        )
        .await;
    scene.gets_in(scene.setup(&access, Some(PASSWORD)).await).await;
}

#[tokio::test]
async fn a_foreign_authority_costs_no_row_and_with_the_right_one_all_arrive_in_order() {
    let scene = Scene::new().await;
    let kafka = SecuredKafka::shared().await;
    let right = kafka.by_password("SCRAM-SHA-512").without("sasl.password");
    let wrong = right.clone().with("ssl.ca.location", &kafka.file("foreign-ca.pem"));
    scene
        .is_turned_away(
            scene.setup(&wrong, Some(PASSWORD)).await,
            ["KAFKA_SSL", "certificate verify failed"],
        )
        .await;
    scene.gets_in(scene.setup(&right, Some(PASSWORD)).await).await;
}

/// A broker that has just started, on a busy machine, may need longer for its first handshake than a question
/// about a topic may take. Whoever was told of a failed transport then was never told why.
#[tokio::test]
async fn a_foreign_authority_that_shows_late_is_named_all_the_same() {
    let scene = Scene::new().await;
    let kafka = SecuredKafka::shared().await;
    let mut wrong = kafka.by_password("SCRAM-SHA-512");
    wrong = wrong.with("ssl.ca.location", &kafka.file("foreign-ca.pem"));
    let proxy = Proxy::to_address(&wrong.brokers);
    proxy.set(Mode::Hold);
    proxy.address().clone_into(&mut wrong.brokers);
    let bridge = scene.setup(&wrong, None).await.run();
    bridge.logged("KAFKA_TRANSPORT").await;
    proxy.set(Mode::Pass);
    bridge.logged("KAFKA_SSL").await;
    bridge.logged(ANOTHER_REASON).await;
}

/// With TLS 1.3 the broker looks at it after the handshake: librdkafka calls it a connection that ends.
#[tokio::test]
async fn a_missing_certificate_costs_no_row_and_with_one_all_arrive_in_order() {
    let scene = Scene::new().await;
    let right = SecuredKafka::shared().await.by_certificate();
    let wrong = right.clone().without("ssl.certificate.location").without("ssl.key.location");
    scene
        .is_turned_away(scene.setup(&wrong, None).await, ["KAFKA_SSL", "alert bad certificate"])
        .await;
    scene.gets_in(scene.setup(&right, None).await).await;
}
