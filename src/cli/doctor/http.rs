//! HTTP rails: whether the receiver is found, answers and is believed. No request is sent.

use super::check::Check;
use crate::cli::CliError;
use crate::config::{Config, RailConfig};
use crate::rails::http::{Obstacle, Visit, visit};

/// Time enough to get another one.
pub(super) const FEW_DAYS: i64 = 14;

pub(super) async fn checks(config: &Config) -> Result<Vec<Check>, CliError> {
    let mut checks = Vec::new();
    for (name, rail) in &config.rails {
        let RailConfig::Http(http) = rail else { continue };
        let prefix = format!("rails.{name}");
        match visit(name, http).await? {
            Ok(visit) => checks.extend(reached(&prefix, &visit)),
            Err(obstacle) => checks.push(stopped(&prefix, &obstacle)),
        }
    }
    Ok(checks)
}

fn reached(prefix: &str, visit: &Visit) -> Vec<Check> {
    let Visit { place, local, days_left, own_days_left } = visit;
    let mut checks = vec![Check::ok(format!("{prefix} receiver"), format!("{place} answers"))];
    let name = format!("{prefix} tls");
    checks.push(match days_left {
        None if *local => Check::ok(name, "this machine"),
        None => Check::warn(
            name,
            "payments go over plain HTTP",
            format!("{prefix}.url = \"https://…\""),
        ),
        Some(days) if *days < FEW_DAYS => Check::warn(
            name,
            format!("its certificate is trusted, but ends in {days} days"),
            format!("ask who runs {place} for a new certificate"),
        ),
        Some(days) => Check::ok(name, format!("its certificate is trusted, {days} days left")),
    });
    if let Some(days) = own_days_left {
        let name = format!("{prefix} client certificate");
        let mend = format!("renew the file that {prefix}.client_certificate_file names");
        checks.push(match *days {
            ..0 => Check::fail(name, "our own certificate has expired", mend),
            0..FEW_DAYS => Check::warn(name, format!("ours ends in {days} days"), mend),
            _ => Check::ok(name, format!("{days} days left")),
        });
    }
    checks
}

fn stopped(prefix: &str, obstacle: &Obstacle) -> Check {
    let name = format!("{prefix} receiver");
    match obstacle {
        Obstacle::Name { host, why } => Check::fail(
            name,
            format!("{host} has no address: {why}"),
            format!("correct the host in {prefix}.url, or the DNS (/etc/resolv.conf)"),
        ),
        Obstacle::Port { place, why } => Check::fail(
            name,
            format!("{place} does not answer: {why}"),
            format!("correct the port in {prefix}.url, start the receiver, or open the firewall"),
        ),
        Obstacle::Tls { place, why } => Check::fail(
            format!("{prefix} tls"),
            format!("{place}: {why}"),
            format!(
                "openssl s_client -connect {place}    shows its certificate; {prefix}.ca_file names a \
                 private authority"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    fn verdicts(days_left: Option<i64>, own: Option<i64>, local: bool) -> Vec<Verdict> {
        let visit = Visit { place: "b:1".to_owned(), local, days_left, own_days_left: own };
        reached("rails.b", &visit)[1..].iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn a_certificate_that_ends_soon_is_told() {
        assert_eq!(verdicts(Some(90), None, false), [Verdict::Ok]);
        assert_eq!(verdicts(Some(13), None, false), [Verdict::Warn]);
        assert_eq!(verdicts(Some(90), Some(3), false), [Verdict::Ok, Verdict::Warn]);
        assert_eq!(verdicts(Some(90), Some(-1), false), [Verdict::Ok, Verdict::Fail]);
    }

    #[test]
    fn plain_http_is_told_unless_it_stays_on_this_machine() {
        assert_eq!(verdicts(None, None, true), [Verdict::Ok]);
        assert_eq!(verdicts(None, None, false), [Verdict::Warn]);
    }
}
