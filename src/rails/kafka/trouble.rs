//! Why no broker can be reached, as far as librdkafka says so.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::types::RDKafkaErrorCode as Code;

/// librdkafka repeats an error that lasts twice in this time.
const LASTS: Duration = Duration::from_secs(60);

/// What librdkafka has said lately.
#[derive(Default)]
pub(super) struct Trouble(Mutex<Option<(Code, Instant)>>);

impl Trouble {
    /// librdkafka has given this code and this reason.
    pub(super) fn heard(&self, code: Code, reason: &str) {
        let code = telling(code, reason);
        let mut heard = self.lock();
        if !lately(*heard).is_some_and(|before| says_more(before, code)) {
            *heard = Some((code, Instant::now()));
        }
    }

    pub(super) fn lately(&self) -> Option<Code> {
        lately(*self.lock())
    }

    /// A broker has answered: what was wrong before is over.
    pub(super) fn is_over(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Code, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn lately(heard: Option<(Code, Instant)>) -> Option<Code> {
    heard.filter(|(_, at)| at.elapsed() < LASTS).map(|(code, _)| code)
}

/// Whether whoever has to mend it is better served with the first: a broker that refuses a password or a
/// certificate may close the connection, or be slow, the next time.
pub(super) fn says_more(one: Code, other: Code) -> bool {
    let says_little = |code| matches!(code, Code::BrokerTransportFailure | Code::OperationTimedOut);
    says_little(other) && !says_little(one)
}

/// librdkafka calls some failures of TLS a failure of the transport, and the same one now this, now
/// that: a certificate that is refused, ours or the broker's. OpenSSL's words give it away.
pub(super) fn telling(code: Code, reason: &str) -> Code {
    let tls = reason.contains(":SSL routines:") && !reason.contains("unexpected eof");
    if code == Code::BrokerTransportFailure && tls { Code::SSL } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &str = "error:0A000086:SSL routines::certificate verify failed";
    const RESET: &str = "Disconnected: connection reset by peer";

    #[test]
    fn a_refused_certificate_is_a_failure_of_tls_and_a_broker_that_goes_away_is_none() {
        let told = |reason| telling(Code::BrokerTransportFailure, reason);
        let alert = "Receive failed: error:0A000412:SSL routines::ssl/tls alert bad certificate";
        assert_eq!(told(alert), Code::SSL);
        assert_eq!(told(REFUSED), Code::SSL);
        let away = "error:0A000126:SSL routines::unexpected eof while reading";
        for reason in [away, RESET, "Connect to ipv4#127.0.0.1:1 failed: Connection refused"] {
            assert_eq!(told(reason), Code::BrokerTransportFailure);
        }
        assert_eq!(telling(Code::Authentication, alert), Code::Authentication);
    }

    #[test]
    fn a_connection_that_ends_does_not_hide_why_the_one_before_was_refused() {
        let trouble = Trouble::default();
        trouble.heard(Code::BrokerTransportFailure, RESET);
        assert_eq!(trouble.lately(), Some(Code::BrokerTransportFailure));
        trouble.heard(Code::SSL, REFUSED);
        trouble.heard(Code::BrokerTransportFailure, RESET);
        trouble.heard(Code::OperationTimedOut, "1 request(s) timed out");
        assert_eq!(trouble.lately(), Some(Code::SSL));
        trouble.heard(Code::Authentication, "SASL authentication error");
        assert_eq!(trouble.lately(), Some(Code::Authentication), "one certificate later");
    }

    #[test]
    fn what_is_over_or_long_ago_hides_nothing() {
        let trouble = Trouble::default();
        let long_ago = Instant::now().checked_sub(LASTS).unwrap();
        *trouble.lock() = Some((Code::SSL, long_ago));
        assert_eq!(trouble.lately(), None);
        trouble.heard(Code::BrokerTransportFailure, RESET);
        assert_eq!(trouble.lately(), Some(Code::BrokerTransportFailure));
        trouble.is_over();
        assert_eq!(trouble.lately(), None);
    }
}
