//! What it means when there is no answer.

use std::error::Error;
use std::io;
use std::time::Duration;

use crate::delivery::{Failure, Outcome};

/// The reason that is kept of a failed connection.
const MAX_REASON_CHARS: usize = 300;

/// The outcome of a request that failed without a whole answer.
///
/// Only an error that the client itself calls a failed connection proves that no byte of the
/// request has left. Everything else may have reached the receiver.
pub(super) fn outcome(error: &reqwest::Error) -> Outcome {
    if error.is_connect() {
        return Outcome::Unavailable { failure: not_connected(error), maybe_sent: false };
    }
    if let Some(alert) = tls_alert(error) {
        // With TLS 1.3 a receiver may refuse our certificate after we have sent. That concerns
        // every row, so it fails none.
        let message = format!("the receiver ended the TLS session: {alert:?}");
        return Outcome::Unavailable {
            failure: Failure::new("HTTP_TLS_ALERT", message),
            maybe_sent: true,
        };
    }
    let message = match io_kind(error) {
        Some(kind) => format!("the connection broke before the answer was complete: {kind}"),
        None => "the connection broke before the answer was complete".to_owned(),
    };
    Outcome::Retry(Failure::new("HTTP_CONNECTION_LOST", message))
}

/// The outcome of a request that took too long.
pub(super) fn timed_out(after: Duration) -> Outcome {
    let message = format!("no complete answer within {} s", after.as_secs());
    Outcome::Retry(Failure::new("HTTP_TIMEOUT", message))
}

fn not_connected(error: &reqwest::Error) -> Failure {
    let code = if error.is_timeout() {
        "HTTP_CONNECT_TIMEOUT"
    } else if error.is_dns() {
        "HTTP_DNS_FAILED"
    } else {
        "HTTP_CONNECT_FAILED"
    };
    // The error itself names the URL, which may hold a key; its causes name the reason.
    let reasons: Vec<String> = causes(error).map(ToString::to_string).collect();
    let message = format!("no connection: {}", reasons.join(": "));
    Failure::new(code, message.chars().take(MAX_REASON_CHARS).collect::<String>())
}

fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |error| (**error).source())
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn tls_alert(error: &reqwest::Error) -> Option<rustls::AlertDescription> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()?.get_ref()).find_map(
        |inner| match inner.downcast_ref::<rustls::Error>()? {
            rustls::Error::AlertReceived(alert) => Some(*alert),
            _ => None,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn failed(url: &str) -> Failure {
        let client = reqwest::Client::builder().tls_certs_only([]).build().unwrap();
        let error = client.post(url).send().await.unwrap_err();
        match outcome(&error) {
            Outcome::Unavailable { failure, maybe_sent: false } => failure,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_failed_connection_says_why_and_not_with_which_key() {
        let refused = failed("http://127.0.0.1:1/?key=hunter2").await;
        assert_eq!(refused.error_code, "HTTP_CONNECT_FAILED");
        assert!(refused.message.contains("refused"), "{}", refused.message);
        assert!(!refused.message.contains("hunter2"), "{}", refused.message);
        let unknown = failed("http://nobody.invalid/?key=hunter2").await;
        assert_eq!(unknown.error_code, "HTTP_DNS_FAILED");
        assert!(!unknown.message.contains("hunter2"), "{}", unknown.message);
    }
}
