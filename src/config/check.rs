//! What is wrong although every value has the right type: found before the first row is claimed.

use std::time::Duration;

use super::rails::LEDGER;
use super::{
    Config, ConfigError, DlqConfig, HttpRailConfig, KafkaRailConfig, RailConfig, RelayConfig,
};
use crate::delivery::DEAD_LETTERS;

/// A worker needs this much of its lease to write down what happened.
const MARGIN: Duration = Duration::from_secs(5);

/// Wide enough for any machine, and no claim of the contract refuses it.
const BATCH_SIZES: std::ops::RangeInclusive<u16> = 1..=10_000;
const LEASES: std::ops::RangeInclusive<u16> = 10..=3_600;
const POLLS_MS: std::ops::RangeInclusive<u64> = 10..=3_600_000;
const STALLED: std::ops::RangeInclusive<u16> = 10..=3_600;
const MAX_DEBOUNCE_MS: u64 = 50;

pub(super) fn check(config: &Config) -> Result<(), ConfigError> {
    check_relay(&config.relay)?;
    for (name, rail) in &config.rails {
        check_rail(name, rail, &config.relay)?;
    }
    check_dlq(config)
}

fn wrong(key: impl Into<String>, problem: impl Into<String>) -> Result<(), ConfigError> {
    Err(ConfigError::Wrong { key: key.into(), problem: problem.into() })
}

fn check_relay(relay: &RelayConfig) -> Result<(), ConfigError> {
    if !BATCH_SIZES.contains(&relay.batch_size) {
        return wrong("relay.batch_size", "must be from 1 to 10000");
    }
    if !LEASES.contains(&relay.lease_seconds) {
        return wrong("relay.lease_seconds", "must be from 10 to 3600");
    }
    if !POLLS_MS.contains(&relay.poll_ms) {
        return wrong("relay.poll_ms", "must be from 10 to 3600000");
    }
    if !STALLED.contains(&relay.stalled_seconds) {
        return wrong("relay.stalled_seconds", "must be from 10 to 3600");
    }
    if relay.debounce_ms > MAX_DEBOUNCE_MS {
        return wrong("relay.debounce_ms", "must be at most 50: a row would wait for it");
    }
    Ok(())
}

fn check_rail(name: &str, rail: &RailConfig, relay: &RelayConfig) -> Result<(), ConfigError> {
    let key = format!("rails.{name}");
    if !is_rail_name(name) {
        return wrong(
            key,
            "is not a rail name: a lower-case letter, then at most 62 of a-z 0-9 _ . -",
        );
    }
    if name == DEAD_LETTERS || name == LEDGER {
        return wrong(key, "has a reserved name: dead letters are configured under [dlq]");
    }
    check_longest_send(&key, rail, relay)?;
    match rail {
        RailConfig::Kafka(KafkaRailConfig { source, .. })
        | RailConfig::Http(HttpRailConfig { source, .. })
            if source.is_empty() =>
        {
            wrong(format!("{key}.source"), "is empty: name who sends, or leave it out")
        }
        RailConfig::Kafka(kafka) => check_kafka(&key, kafka),
        RailConfig::Http(http) => check_http(&key, http),
    }
}

/// Everything that waits for a rail has to wait for as long as it may take to send.
fn check_longest_send(
    key: &str,
    rail: &RailConfig,
    relay: &RelayConfig,
) -> Result<(), ConfigError> {
    let timeout = match rail {
        RailConfig::Kafka(_) => format!("{key}.delivery_timeout_seconds"),
        RailConfig::Http(_) => format!("{key}.timeout_seconds"),
    };
    let longest = rail.longest_send();
    if longest.is_zero() {
        return wrong(timeout, "must be at least 1");
    }
    if longest + MARGIN > relay.lease() {
        let problem = format!(
            "is {} s, but a lease of {} s (relay.lease_seconds) covers at most {} s: make the lease longer or the time-out shorter",
            longest.as_secs(),
            relay.lease_seconds,
            relay.lease().saturating_sub(MARGIN).as_secs()
        );
        return wrong(timeout, problem);
    }
    for (key, seconds, why) in [
        (
            "relay.shutdown_seconds",
            relay.shutdown_seconds,
            "a shutdown waits for what is under way",
        ),
        (
            "relay.stalled_seconds",
            relay.stalled_seconds.into(),
            "a bridge that waits for an answer is not stuck",
        ),
    ] {
        if longest + MARGIN > Duration::from_secs(seconds) {
            let (longest, least) = (longest.as_secs(), (longest + MARGIN).as_secs());
            let problem =
                format!("is {longest} s, so {key} must be at least {least}, not {seconds}: {why}");
            return wrong(timeout, problem);
        }
    }
    Ok(())
}

fn check_kafka(key: &str, kafka: &KafkaRailConfig) -> Result<(), ConfigError> {
    let brokers = format!("{key}.brokers");
    match kafka.brokers.as_deref() {
        None => wrong(brokers, "is missing: set it, or KAFKA_BROKERS, to host:9092"),
        Some(written) if written.split(',').any(|broker| broker.trim().is_empty()) => {
            wrong(brokers, "must be host:9092, or several with commas between")
        }
        _ if !(1..=256).contains(&kafka.shards) => {
            wrong(format!("{key}.shards"), "must be from 1 to 256")
        }
        _ if kafka.transactional_id_prefix.is_empty() => wrong(
            format!("{key}.transactional_id_prefix"),
            "is empty: two bridges without one would fence each other off",
        ),
        _ if kafka.max_in_flight == 0 => {
            wrong(format!("{key}.max_in_flight"), "must be at least 1")
        }
        _ => Ok(()),
    }
}

fn check_http(key: &str, http: &HttpRailConfig) -> Result<(), ConfigError> {
    if http.concurrency == 0 {
        return wrong(format!("{key}.concurrency"), "must be at least 1");
    }
    if http.requests_per_second == Some(0) {
        return wrong(format!("{key}.requests_per_second"), "must be at least 1");
    }
    if http.idempotency_ttl_seconds.is_some_and(|ttl| ttl <= http.timeout_seconds) {
        let problem = "must be more than timeout_seconds: no row could be sent a second time";
        return wrong(format!("{key}.idempotency_ttl_seconds"), problem);
    }
    if http.bearer_token.as_ref().is_some_and(|token| token.expose().is_empty()) {
        return wrong(format!("{key}.bearer_token"), "is empty: give a token, or leave it out");
    }
    Ok(())
}

fn check_dlq(config: &Config) -> Result<(), ConfigError> {
    let Some(dlq) = &config.dlq else { return Ok(()) };
    if dlq.is_ledger() {
        return match dlq.topic {
            Some(_) => {
                wrong("dlq.topic", "has no meaning when dlq.rail is \"ledger\": leave it out")
            }
            None => Ok(()),
        };
    }
    match config.rails.get(&dlq.rail) {
        Some(RailConfig::Kafka(_)) if dlq.topic.is_none() => {
            wrong("dlq.topic", "is missing: name the topic that carries dead letters")
        }
        Some(RailConfig::Kafka(_)) => check_dlq_topic(config, dlq),
        _ => wrong(
            "dlq.rail",
            format!("is {:?}, which is neither a Kafka rail nor \"ledger\"", dlq.rail),
        ),
    }
}

/// A consumer of payments must never take a dead letter for one.
fn check_dlq_topic(config: &Config, dlq: &DlqConfig) -> Result<(), ConfigError> {
    let carries = |name: &str, rail: &RailConfig| match rail {
        RailConfig::Kafka(rail) => dlq.topic.as_ref().is_some_and(|dead| {
            rail.topics.contains(dead) || leads_to(&rail.topic.replace("{rail_type}", name), dead)
        }),
        RailConfig::Http(_) => false,
    };
    match config.rails.iter().find(|(name, rail)| carries(name, rail)) {
        Some((name, _)) => {
            wrong("dlq.topic", format!("is a topic of rails.{name}: dead letters need their own"))
        }
        None => Ok(()),
    }
}

/// Whether the rows of some tenant go to this topic.
fn leads_to(template: &str, topic: &str) -> bool {
    let Some((before, after)) = template.split_once("{tenant}") else {
        return template == topic;
    };
    let tenant = topic.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    tenant.is_some_and(|tenant| tenant.parse::<uuid::Uuid>().is_ok())
}

fn is_rail_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.-".contains(c);
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(allowed)
}
