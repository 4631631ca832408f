//! `Retry-After`: how long the receiver asks us to wait.

use std::time::{Duration, SystemTime};

/// However long a receiver asks for, the row is looked at again after this.
const LONGEST: Duration = Duration::from_secs(3_600);

/// Seconds or an HTTP date, within bounds. Nothing where the value makes no sense, or asks for no
/// wait: our own backoff then decides.
pub(super) fn parse(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    let wait = if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit ask for longer than the bound.
        value.parse().map_or(LONGEST, Duration::from_secs)
    } else {
        httpdate::parse_http_date(value).ok()?.duration_since(now).ok()?
    };
    (!wait.is_zero()).then(|| wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
    }

    fn date(seconds_from_now: u64) -> String {
        httpdate::fmt_http_date(now() + Duration::from_secs(seconds_from_now))
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        assert_eq!(parse("7", now()), Some(Duration::from_secs(7)));
        assert_eq!(parse(" 7 ", now()), Some(Duration::from_secs(7)));
        assert_eq!(parse(&date(90), now()), Some(Duration::from_secs(90)));
    }

    #[test]
    fn nobody_makes_us_wait_for_ever() {
        assert_eq!(parse("86400", now()), Some(LONGEST));
        assert_eq!(parse("99999999999999999999999999", now()), Some(LONGEST));
        assert_eq!(parse(&date(86_400), now()), Some(LONGEST));
    }

    #[test]
    fn nonsense_and_the_past_ask_for_nothing() {
        for value in ["", "0", "-5", "soon", "1.5", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(parse(value, now()), None, "{value}");
        }
    }
}
