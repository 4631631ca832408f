//! A whole run in which everything fails, at its most talkative: no payload and no secret is in any
//! log, metric or error of the ledger.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio_postgres::Client;

use crate::collector::{Collector, Mood};
use crate::process::{Bridge, Setup};
use crate::refusals::put_policies_in_force;
use crate::rows::{header, wait_for};
use crate::secured::{free_address, metrics};
use crate::support::{Database, SecuredKafka, Topic};

const LOGIN_PASSWORD: &str = "only-for-tests";
const WRONG_PASSWORD: &str = "wr0ng-kafka-passw0rd";
const KAFKA_USER: &str = "bridge-hunter2";
const TOKEN: &str = "bearer-t0ken-value";
const SIGNING: &str = "c2lnbmluZy1zM2NyZXQtb2YtdGhlLWJhbms=";
const IN_URL: &str = "key-in-the-qu3ry";
const COLLECTOR_TOKEN: &str = "c0llector-token";
/// In payloads, in the name of a member, and in a producer's own header.
const PAYLOAD: &str = "DE89-payload-0532";
const MEMBER: &str = "member-payl0ad";
const OWN_HEADER: &str = "own-h3ader-value";

const SECRETS: [&str; 10] = [
    LOGIN_PASSWORD,
    WRONG_PASSWORD,
    KAFKA_USER,
    TOKEN,
    SIGNING,
    IN_URL,
    COLLECTOR_TOKEN,
    PAYLOAD,
    MEMBER,
    OWN_HEADER,
];

/// What of these is in a text, also as base64, which is how some of them travel.
fn found_in(text: &str) -> Vec<&'static str> {
    let is_there = |secret: &&str| {
        text.contains(*secret) || text.contains(STANDARD.encode(secret).trim_end_matches('='))
    };
    SECRETS.into_iter().filter(is_there).collect()
}

/// A receiver that repeats everything it was sent: in its status line's body, in its headers, and
/// where the rail looks for a code.
async fn echo() -> String {
    let answer = |headers: HeaderMap, body: Bytes| async move {
        let text = String::from_utf8_lossy(&body).into_owned();
        let status = if text.contains("retry") { 500 } else { 422 };
        let token = headers.get("authorization").cloned();
        let mut answer = HeaderMap::new();
        answer.extend(token.map(|token| (axum::http::header::WWW_AUTHENTICATE, token)));
        (StatusCode::from_u16(status).unwrap(), answer, text)
    };
    serve(Router::new().route("/pay", post(answer))).await
}

/// One that takes a request and falls silent, and remembers that it was asked.
async fn silence(asked: Arc<Mutex<usize>>) -> String {
    let hang = move || async move {
        *asked.lock().unwrap() += 1;
        std::future::pending::<StatusCode>().await
    };
    serve(Router::new().route("/pay", post(hang))).await
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/pay?key={IN_URL}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

async fn enqueue(client: &Client, rail: &str, name: &str, payload: serde_json::Value) {
    const CALL: &str = "SELECT outbox.enqueue_payment_outbox($2, $2, 'key', $1, $3, $4)";
    let headers = serde_json::json!({
        "mine": OWN_HEADER,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    });
    client.execute(CALL, &[&rail, &name, &payload, &headers]).await.unwrap();
}

async fn enqueue_everything(client: &Client) {
    let valid = |mark: &str| serde_json::json!({"amount": "10.00", "currency": "EUR", "destination": PAYLOAD, "note": mark});
    for rail in ["kafka", "locked", "echo", "silent", "nobody"] {
        enqueue(client, rail, &format!("{rail}-valid"), valid("x")).await;
        let invalid = serde_json::json!({"amount": PAYLOAD, "currency": PAYLOAD, MEMBER: {MEMBER: [PAYLOAD]}});
        enqueue(client, rail, &format!("{rail}-invalid"), invalid).await;
    }
    enqueue(client, "echo", "echo-retry", valid("retry")).await;
}

/// Everything that the ledger says in words.
async fn words_of_the_ledger(client: &Client) -> String {
    const WORDS: &str = "SELECT coalesce(string_agg(concat_ws(' ', error_code, error_message, rail_code, rail_reference), E'\\n'), '') \
        FROM outbox.payment_outbox_attempts";
    const EVENTS: &str = "SELECT coalesce(string_agg(to_jsonb(e)::text, E'\\n'), '') FROM outbox.payment_outbox_events AS e";
    let attempts: String = client.query_one(WORDS, &[]).await.unwrap().get(0);
    let events: String = client.query_one(EVENTS, &[]).await.unwrap().get(0);
    format!("{attempts}\n{events}")
}

#[tokio::test]
async fn no_payload_and_no_secret_is_told_to_anybody() {
    let (database, topic, letters) =
        (Database::new().await, Topic::new().await, Topic::new().await);
    let client = database.connect().await;
    let asked = Arc::default();
    let (echo, silent) = (echo().await, silence(Arc::clone(&asked)).await);
    let collector = Collector::open(Mood::Refuses).await;
    let locked = SecuredKafka::shared().await.by_password("SCRAM-SHA-512");
    let locked = locked.with("sasl.password", WRONG_PASSWORD).with("debug", "all");
    let admin = free_address().await;
    let setup = Setup::kafka(&database, &topic).await;
    let mut setup = setup.and(&format!(
        "properties.debug = \"all\"\n\
         [rails.locked]\nkind = \"kafka\"\nbrokers = \"{}\"\ntopic = \"t\"\ndelivery_timeout_seconds = 2\n{}\
         [rails.echo]\nkind = \"http\"\nurl = \"{echo}\"\nbearer_token = \"{TOKEN}\"\n\
         signing_secrets = [\"whsec_{SIGNING}\"]\ncode_pointer = \"/nowhere\"\n\
         [rails.silent]\nkind = \"http\"\nurl = \"{silent}\"\nbearer_token = \"{TOKEN}\"\ntimeout_seconds = 1\n\
         [rails.nobody]\nkind = \"http\"\nurl = \"http://127.0.0.1:1/?key={IN_URL}\"\nbearer_token = \"{TOKEN}\"\n\
         [dlq]\nrail = \"kafka\"\ntopic = \"{}\"\n\
         [telemetry]\notlp_endpoint = \"{}\"\n",
        locked.brokers,
        locked.toml(),
        letters.name(),
        collector.endpoint,
    ));
    setup.toml = setup.toml.replace("schema = \"any\"\n", "");
    put_policies_in_force(&database, &setup).await;
    enqueue_everything(&client).await;
    let setup = setup
        .env("TRESTLE_LOG", "trace,hyper=trace,h2=trace,rustls=trace,reqwest=trace,tokio_postgres=trace,opentelemetry=trace")
        .env("TRESTLE_ADMIN__LISTEN", &admin)
        .env("OTEL_EXPORTER_OTLP_HEADERS", &format!("authorization=Bearer%20{COLLECTOR_TOKEN}"))
        .env("RUST_BACKTRACE", "full");
    let mut bridge = setup.run();
    // Each rail has failed in its own way.
    wait_for(&database, "SELECT count(*) = 5 FROM outbox.payment_outbox_attempts WHERE error_code = 'PAYLOAD_INVALID'").await;
    for code in ["HTTP_422", "HTTP_500", "HTTP_TIMEOUT"] {
        wait_for(&database, &format!("SELECT EXISTS (SELECT FROM outbox.payment_outbox_attempts WHERE error_code = '{code}')")).await;
    }
    for words in ["KAFKA_AUTHENTICATION", "HTTP_CONNECT_FAILED", "spans cannot be exported"] {
        bridge.logged(words).await;
    }
    assert!(*asked.lock().unwrap() > 0);
    let letter = letters.consume(6).await.remove(0);
    assert!(
        found_in(&String::from_utf8_lossy(&letter.value)).contains(&PAYLOAD),
        "it is looked for rightly"
    );
    assert_eq!(found_in(&header(&letter, "dlq_reason")), [""; 0]);
    let metrics = metrics(&admin).await;
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    tells_nothing(&bridge, &client, &metrics).await;
    assert_eq!(found_in(&format!("{:?}", collector.spans())), [""; 0]);
}

async fn tells_nothing(bridge: &Bridge, client: &Client, metrics: &str) {
    let failed: Vec<String> = client
        .query(
            "SELECT outbox_id::text FROM outbox.payment_outbox_attempts WHERE state = 'FAILED'",
            &[],
        )
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let (log, words) = (bridge.log(), words_of_the_ledger(client).await);
    assert!(failed.len() >= 6, "{failed:?}");
    for id in &failed {
        assert_eq!(
            log.matches(&format!("\"outbox_id\":\"{id}\",\"participant_id\"")).count(),
            1,
            "one line for {id}"
        );
    }
    assert!(
        log.contains("librdkafka")
            && metrics.contains("rail_errors_total")
            && words.contains("/amount")
    );
    for (what, text) in [("log", log.as_str()), ("metrics", metrics), ("ledger", &words)] {
        assert_eq!(found_in(text), [""; 0], "in the {what}");
    }
    // It is able to fail.
    assert_eq!(found_in(&format!("{log} {TOKEN}")), [TOKEN]);
    assert_eq!(found_in(&STANDARD.encode(PAYLOAD)), [PAYLOAD]);
}

/// A password that is wrong, and a server that is none.
#[tokio::test]
async fn a_bridge_that_cannot_start_does_not_tell_its_password() {
    let database = Database::new().await;
    let topic = Topic::unmade();
    for (url, words) in [
        (database.url_for("nobody", WRONG_PASSWORD), "password authentication failed"),
        (format!("postgres://u:{WRONG_PASSWORD}@127.0.0.1:1/d"), "lost"),
        (
            format!("postgres://u:{WRONG_PASSWORD}@127.0.0.1:1/d?sslmode={WRONG_PASSWORD}"),
            "sslmode",
        ),
    ] {
        let setup = Setup::kafka(&database, &topic).await.env("DATABASE_URL", &url);
        let mut bridge = setup.env("TRESTLE_LOG", "trace").run();
        let ended = tokio::time::timeout(Duration::from_secs(30), bridge.ended()).await;
        assert!(!ended.expect("it ends").success(), "{}", bridge.log());
        assert!(bridge.log().contains(words), "{words}: {}", bridge.log());
        assert_eq!(found_in(&bridge.log()), [""; 0], "{}", bridge.log());
    }
}
