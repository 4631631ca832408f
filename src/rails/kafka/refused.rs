//! Properties of librdkafka that a user may not set, and why.

use crate::config::KafkaRailConfig;

/// Partitioners that keep a participant in one partition.
const KEY_HASHING: &[&str] =
    &["consistent", "consistent_random", "murmur2", "murmur2_random", "fnv1a", "fnv1a_random"];

const ACKNOWLEDGED_BY_ALL: &str = "is not yours to set: a row is DISPATCHED only when all in-sync \
    replicas have it (acks=all)";
const IDEMPOTENT: &str = "is not yours to set: the producer is idempotent, so that its own retries \
    neither duplicate nor reorder";
const DEADLINES: &str = "is not yours to set: librdkafka lets later records pass one that timed \
    out; use delivery_timeout_seconds";
const CALLBACKS: &str = "is not yours to set: the rail learns from it what became of a row";
const BROKERS: &str = "is not yours to set: use `brokers`";
const LAST_IN_FIRST_OUT: &str = "is not yours to set: it would send later rows first";

const REFUSED: &[(&str, &str)] = &[
    ("acks", ACKNOWLEDGED_BY_ALL),
    ("request.required.acks", ACKNOWLEDGED_BY_ALL),
    ("enable.idempotence", IDEMPOTENT),
    ("enable.gapless.guarantee", IDEMPOTENT),
    ("max.in.flight", IDEMPOTENT),
    ("max.in.flight.requests.per.connection", IDEMPOTENT),
    ("retries", IDEMPOTENT),
    ("message.send.max.retries", IDEMPOTENT),
    ("transactional.id", "is not yours to set: `delivery` says which guarantee the rail gives"),
    ("message.timeout.ms", DEADLINES),
    ("delivery.timeout.ms", DEADLINES),
    ("delivery.report.only.error", CALLBACKS),
    ("bootstrap.servers", BROKERS),
    ("metadata.broker.list", BROKERS),
    ("queuing.strategy", LAST_IN_FIRST_OUT),
    ("msg_order_cmp", LAST_IN_FIRST_OUT),
    ("log.queue", CALLBACKS),
    ("enabled_events", CALLBACKS),
];

/// Why the rail cannot keep its promises with this value of this property.
pub(super) fn why(config: &KafkaRailConfig, key: &str, value: &str) -> Option<String> {
    if let Some((_, reason)) = REFUSED.iter().find(|(refused, _)| *refused == key) {
        return Some((*reason).to_owned());
    }
    match key {
        _ if key.ends_with("_cb") => Some(CALLBACKS.to_owned()),
        "partitioner" if !KEY_HASHING.contains(&value) => Some(format!(
            "must be one that keeps a participant in one partition: {}",
            KEY_HASHING.join(", ")
        )),
        // Zero is librdkafka's word for no limit.
        "queue.buffering.max.messages"
            if value.parse().is_ok_and(|max: usize| max != 0 && max < config.max_in_flight) =>
        {
            Some(format!("must be at least max_in_flight, {}", config.max_in_flight))
        }
        "linger.ms" | "queue.buffering.max.ms" if lingers_too_long(config, value) => {
            Some("must be less than half of delivery_timeout_seconds".to_owned())
        }
        _ => None,
    }
}

fn lingers_too_long(config: &KafkaRailConfig, value: &str) -> bool {
    value.parse().is_ok_and(|ms: f64| ms * 2.0 >= config.delivery_timeout_seconds as f64 * 1_000.0)
}
