//! What an HTTP status means for a row. One table: every status has its place here.

use crate::delivery::Class;

/// What a status alone says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Delivered,
    Failed(Class),
}

/// The class of a status where the configuration names no other.
///
/// The hard question is whether a refusal is about this message or about every message. A refusal
/// that is about the message is terminal. One that would meet every message alike (a revoked token,
/// a path that moved, a method or media type that is not taken) is unavailable, because a wrong
/// token must not fail a thousand payments: the rows wait, the breaker opens, an alarm rings.
pub(super) fn verdict(status: u16) -> Verdict {
    let class = match status {
        200..=299 => return Verdict::Delivered,
        // A payment is not carried to a place that the configuration does not name, and a receiver
        // that has moved has moved for every message.
        300..=399 => Class::Unavailable,
        // About the message: malformed, declined, too large, refused by law.
        400 | 402 | 412 | 413 | 416 | 422 | 431 | 451 => Class::Terminal,
        // About who we are: token, certificate, proxy, captive portal.
        401 | 403 | 407 | 511 => Class::Unavailable,
        // About the place or the manner. 410 asks to stop sending, which an open breaker does.
        404 | 405 | 406 | 410 | 411 | 414 | 415 | 417 | 421 | 426 | 428 | 501 | 505 => {
            Class::Unavailable
        }
        // Throttling, or nobody at home behind the gateway.
        429 | 502 | 503 | 507 | 509 => Class::Unavailable,
        // The same, as content delivery networks in front of a receiver spell it.
        521 | 522 | 523 | 525 | 526 | 529 | 530 => Class::Unavailable,
        // In doubt, or this message only: 409 while the first attempt is still being worked on, a
        // time-out behind the gateway (504), a crash (500), and everything that nobody defined.
        _ => Class::Retryable,
    };
    Verdict::Failed(class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(expected: Verdict) -> Vec<u16> {
        (100..=599).filter(|status| verdict(*status) == expected).collect()
    }

    #[test]
    fn only_2xx_is_delivered() {
        assert_eq!(statuses(Verdict::Delivered), (200..=299).collect::<Vec<_>>());
    }

    #[test]
    fn refusals_of_the_message_are_terminal() {
        let expected = [400, 402, 412, 413, 416, 422, 431, 451];
        assert_eq!(statuses(Verdict::Failed(Class::Terminal)), expected);
    }

    #[test]
    fn what_would_meet_every_message_fails_none() {
        let mut expected: Vec<u16> = (300..=399).collect();
        expected.extend([
            401, 403, 404, 405, 406, 407, 410, 411, 414, 415, 417, 421, 426, 428, 429, 501, 502,
            503, 505, 507, 509, 511, 521, 522, 523, 525, 526, 529, 530,
        ]);
        assert_eq!(statuses(Verdict::Failed(Class::Unavailable)), expected);
    }

    #[test]
    fn what_is_in_doubt_or_unknown_is_tried_again() {
        for status in
            [100, 101, 408, 409, 418, 423, 424, 425, 499, 500, 504, 508, 520, 524, 599, 999]
        {
            assert_eq!(verdict(status), Verdict::Failed(Class::Retryable), "{status}");
        }
    }
}
