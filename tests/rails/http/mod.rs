//! The HTTP rail against a receiver that speaks from a real socket.

mod authority;
mod configuration;
mod faults;
mod flow;
mod http2;
mod receiver;
mod signature;
mod tls;

use std::sync::Arc;

use serde_json::{Value, json};
use trestle::config::{ConfigError, HttpRailConfig};
use trestle::delivery::Row;
use trestle::rails::Rail;
use trestle::rails::http::HttpRail;

use self::receiver::{Receiver, Reply, Request};
use crate::conformance::{Arrival, Harness};

const TOKEN: &str = "token-hunter2";
const SIGNING_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A rail with the settings that a test names.
fn rail(settings: Value) -> Result<HttpRail, ConfigError> {
    let mut config = json!({ "kind": "http", "timeout_seconds": 1 });
    config.as_object_mut().unwrap().append(settings.clone().as_object_mut().unwrap());
    let config: HttpRailConfig = serde_json::from_value(config).unwrap();
    HttpRail::new("ach", &config)
}

/// A rail with a receiver that refuses what it does not like, and repeats whatever it hears.
pub(crate) struct HttpHarness {
    rail: Arc<HttpRail>,
    receiver: Receiver,
}

impl Harness for HttpHarness {
    async fn start() -> Self {
        let receiver = Receiver::start(take).await;
        let rail = rail(json!({
            "url": format!("{}?key=query-secret", receiver.url()),
            "bearer_token": TOKEN,
            "signing_secrets": [SIGNING_SECRET],
        }));
        Self { rail: Arc::new(rail.unwrap()), receiver }
    }

    fn rail(&self) -> Arc<dyn Rail> {
        Arc::clone(&self.rail) as Arc<dyn Rail>
    }

    fn spoil(&self, row: &mut Row) {
        row.payload = row.payload.replace(r#""to""#, r#""unknown""#);
    }

    async fn go_down(&mut self) {
        self.receiver.stop().await;
    }

    async fn hang(&mut self) {
        self.receiver.reply_with(|_| Reply::Hang);
    }

    async fn lose_answers(&mut self) {
        self.receiver.reply_with(|_| Reply::Raw(Vec::new()));
    }

    async fn arrived(&mut self) -> Vec<Arrival> {
        let kept = self.receiver.requests().into_iter().filter(|request| !is_spoiled(request));
        kept.map(|request| Arrival {
            outbox_id: request.header("ce-id").unwrap().parse().unwrap(),
            payload: String::from_utf8(request.body).unwrap(),
        })
        .collect()
    }

    fn secrets(&self) -> Vec<String> {
        let key = SIGNING_SECRET.trim_start_matches("whsec_");
        [TOKEN, key, "query-secret"].map(str::to_owned).to_vec()
    }
}

fn take(request: &Request) -> Reply {
    let heard = format!("{}{}", request.head, String::from_utf8_lossy(&request.body));
    Reply::status(if is_spoiled(request) { 422 } else { 200 }, heard)
}

fn is_spoiled(request: &Request) -> bool {
    String::from_utf8_lossy(&request.body).contains(r#""unknown""#)
}
