//! The collector of traces, where one is configured. Deliveries go on without it, so that nothing here is a failure.

use reqwest::Url;

use super::check::Check;
use super::http::FEW_DAYS;
use crate::admin::spans;
use crate::cli::CliError;
use crate::config::Config;
use crate::rails::http::{Obstacle, Visit, visit_address};

const NAME: &str = "telemetry.otlp_endpoint";

/// Connects and, with TLS, shakes hands. No span is sent.
pub(super) async fn checks(config: &Config) -> Result<Vec<Check>, CliError> {
    let Some(url) = spans::check(config)? else { return Ok(Vec::new()) };
    Ok(vec![judge(&url, visit_address(&url).await)])
}

fn judge(url: &Url, visit: Result<Visit, Obstacle>) -> Check {
    match visit {
        Ok(Visit { place, days_left: Some(days), .. }) if days < FEW_DAYS => Check::warn(
            NAME,
            format!("{place} answers, but its certificate ends in {days} days"),
            format!("ask who runs {place} for a new certificate"),
        ),
        Ok(Visit { place, days_left: Some(_), .. }) => {
            Check::ok(NAME, format!("{place} answers, its certificate is trusted"))
        }
        Ok(Visit { place, .. }) => Check::ok(NAME, format!("{place} answers, without TLS")),
        Err(Obstacle::Tls { place, why }) => Check::warn(
            NAME,
            format!("{place}: {why}; spans are lost"),
            format!("openssl s_client -connect {place}    shows its certificate"),
        ),
        Err(Obstacle::Name { host, why }) => lost(url, &format!("{host} has no address: {why}")),
        Err(Obstacle::Port { place, why }) => lost(url, &format!("{place} does not answer: {why}")),
    }
}

fn lost(url: &Url, why: &str) -> Check {
    let place = url.host_str().unwrap_or_default();
    let mend = format!("correct {NAME}, or start the collector on {place}");
    Check::warn(NAME, format!("{why}; spans are lost"), mend)
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_certificate_that_ends_soon_is_told() {
        let url = Url::parse("https://c:4318").unwrap();
        let visit = |days_left| Visit {
            place: "c:4318".to_owned(),
            local: false,
            days_left: Some(days_left),
            own_days_left: None,
        };
        assert_eq!(judge(&url, Ok(visit(90))).verdict, Verdict::Ok);
        assert_eq!(judge(&url, Ok(visit(3))).verdict, Verdict::Warn);
    }
}
