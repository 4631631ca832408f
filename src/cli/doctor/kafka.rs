//! Kafka rails: brokers, topics, replication, limits, and what we may.

use super::acls::{Acls, WANTED};
use super::check::Check;
use crate::cli::CliError;
use crate::config::{Config, KafkaRailConfig, RailConfig};
use crate::rails::kafka::{
    Cluster, Operation, TopicFacts, TopicSettings, Trouble, examine, known_topics, usual_topic,
};

/// A consumer that was away for so long has lost records.
const SHORT_RETENTION_MS: i64 = 86_400_000;

/// What a topic is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Payments,
    DeadLetters,
}

/// Asks each cluster, one after the other: a broker that does not answer takes its time.
pub(super) async fn checks(config: &Config) -> Result<Vec<Check>, CliError> {
    let mut checks = Vec::new();
    for (name, rail) in &config.rails {
        let RailConfig::Kafka(kafka) = rail else { continue };
        let own = known_topics(name, kafka)?;
        let dead = config.dlq.as_ref().filter(|dlq| dlq.rail == *name);
        let dead = dead.and_then(|dlq| dlq.topic.clone());
        let asked: Vec<String> = own.iter().cloned().chain(dead.clone()).collect();
        let (rail, asking) = (name.clone(), kafka.clone());
        let examined = tokio::task::spawn_blocking(move || examine(&rail, &asking, &asked));
        let examined = examined.await.map_err(|error| CliError::Runtime(error.into()))??;
        let prefix = format!("rails.{name}");
        match examined {
            Err(trouble) => checks.push(unreachable(&prefix, kafka, &trouble)),
            Ok(cluster) => checks.extend(judge(&prefix, kafka, &cluster, dead.as_deref())),
        }
        if usual_topic(name, kafka)?.is_none() {
            let found = format!("{} is one for each tenant: not looked at", kafka.topic);
            checks.push(Check::skip(format!("{prefix} topic"), found));
        }
    }
    Ok(checks)
}

fn judge(
    prefix: &str,
    kafka: &KafkaRailConfig,
    cluster: &Cluster,
    dead: Option<&str>,
) -> Vec<Check> {
    let brokers = kafka.brokers.as_deref().unwrap_or_default();
    let found = format!("{brokers}: {} brokers, {}", cluster.brokers, cluster.protocol);
    let mut checks = vec![Check::ok(format!("{prefix} brokers"), found)];
    checks.push(security(prefix, brokers, &cluster.protocol));
    let acls = Acls { prefix, brokers };
    checks.push(acls.admission(&cluster.admission, &cluster.topics));
    let mut limit = cluster.message_bytes;
    for (topic, facts) in &cluster.topics {
        let purpose = match dead {
            Some(dead) if dead == topic => Purpose::DeadLetters,
            _ => Purpose::Payments,
        };
        let name = format!("{prefix} topic {topic}");
        match facts {
            Err(trouble) => checks.push(no_topic(&name, topic, &acls, trouble)),
            Ok(facts) => {
                checks.push(acls.on(topic, facts.allowed.as_deref()));
                checks.extend(topic_checks(&name, topic, &acls, facts, limit, purpose));
                let of_topic = facts.settings.as_ref().map(|settings| settings.max_message_bytes);
                // What no topic takes needs no room among the dead letters either.
                limit = limit.min(of_topic.unwrap_or(limit));
            }
        }
    }
    checks
}

fn unreachable(prefix: &str, kafka: &KafkaRailConfig, trouble: &Trouble) -> Check {
    let brokers = kafka.brokers.as_deref().unwrap_or_default();
    let Trouble { code, words } = trouble;
    let mend = match code.as_str() {
        "KAFKA_SSL" => format!(
            "correct ssl.ca.location, and with client certificates ssl.certificate.location and \
             ssl.key.location, in [{prefix}.properties]"
        ),
        "KAFKA_AUTHENTICATION" | "KAFKA_SASL_AUTHENTICATION_FAILED" => format!(
            "correct sasl.mechanism, sasl.username and sasl.password in [{prefix}.properties]"
        ),
        "KAFKA_RESOLVE" => format!("correct the host name in {prefix}.brokers, or in the DNS"),
        _ => format!(
            "correct {prefix}.brokers (or KAFKA_BROKERS), start the broker, open the firewall, or \
             set security.protocol in [{prefix}.properties]"
        ),
    };
    Check::fail(format!("{prefix} brokers"), format!("{brokers}: {code}: {words}"), mend)
}

fn security(prefix: &str, brokers: &str, protocol: &str) -> Check {
    let name = format!("{prefix} tls");
    let is_local = |broker: &str| {
        let host = broker.trim().rsplit_once(':').map_or(broker, |(host, _)| host);
        matches!(host, "localhost" | "127.0.0.1" | "[::1]" | "::1")
    };
    match protocol {
        "SSL" | "SASL_SSL" => Check::ok(name, format!("encrypted ({protocol})")),
        _ if brokers.split(',').all(is_local) => Check::ok(name, "this machine"),
        _ => Check::warn(
            name,
            format!("not encrypted ({protocol})"),
            format!("\"security.protocol\" = \"SASL_SSL\"    in [{prefix}.properties]"),
        ),
    }
}

fn no_topic(name: &str, topic: &str, acls: &Acls<'_>, trouble: &Trouble) -> Check {
    let Trouble { code, words } = trouble;
    let brokers = acls.brokers;
    let mend = match code.as_str() {
        "KAFKA_TOPIC_AUTHORIZATION_FAILED" => acls.add(&WANTED, &[topic]),
        _ => format!(
            "kafka-topics.sh --bootstrap-server {brokers} --create --topic {topic} --partitions 12 \
             --replication-factor 3 --config min.insync.replicas=2"
        ),
    };
    Check::fail(name, format!("{code}: {words}"), mend)
}

fn topic_checks(
    name: &str,
    topic: &str,
    acls: &Acls<'_>,
    facts: &TopicFacts,
    message_bytes: u64,
    purpose: Purpose,
) -> Vec<Check> {
    let alter = |setting: &str| alter(acls.brokers, topic, setting);
    let mut checks = vec![replication(name, facts, &alter)];
    match &facts.settings {
        None => checks.push(Check::warn(
            name,
            "its settings may not be read, so that a row may be sent that it refuses for its size",
            acls.add(&[Operation::DescribeConfigs], &[topic]),
        )),
        Some(settings) => {
            checks.extend(setting_checks(name, settings, message_bytes, purpose, &alter));
        }
    }
    checks
}

/// The command that changes a setting of a topic.
pub(super) fn alter(brokers: &str, topic: &str, setting: &str) -> String {
    format!(
        "kafka-configs.sh --bootstrap-server {brokers} --alter --entity-type topics \
         --entity-name {topic} --add-config {setting}"
    )
}

pub(super) fn replication(
    name: &str,
    facts: &TopicFacts,
    alter: &impl Fn(&str) -> String,
) -> Check {
    let TopicFacts { partitions, leaderless, replicas, in_sync, settings, .. } = facts;
    let needed = settings.as_ref().map_or(1, |settings| settings.min_in_sync);
    let found = format!("{partitions} partitions, {replicas} replicas, {needed} in sync needed");
    let restart = "bring the brokers back that hold its replicas";
    if *leaderless > 0 {
        let found = format!("{leaderless} of {partitions} partitions have no leader");
        return Check::fail(name, found, restart);
    }
    if needed > *replicas {
        let mend = alter(&format!("min.insync.replicas={replicas}"));
        return Check::fail(name, format!("{found}: nothing can be written"), mend);
    }
    if *in_sync < needed {
        let found = format!("{found}, and there are {in_sync}: nothing can be written");
        return Check::fail(name, found, restart);
    }
    if *replicas == 1 {
        let found = format!("{found}: the loss of a broker loses its records");
        return Check::warn(name, found, "kafka-reassign-partitions.sh …    to three replicas");
    }
    if *in_sync < *replicas {
        return Check::warn(name, format!("{found}, {in_sync} in sync"), restart);
    }
    if needed == 1 {
        let found = format!("{found}: acknowledged records can be lost with one broker");
        return Check::warn(name, found, alter("min.insync.replicas=2"));
    }
    Check::ok(name, found)
}

fn setting_checks(
    name: &str,
    settings: &TopicSettings,
    message_bytes: u64,
    purpose: Purpose,
    alter: &impl Fn(&str) -> String,
) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut warn =
        |found: String, setting: &str| checks.push(Check::warn(name, found, alter(setting)));
    if settings.cleanup_policy.contains("compact") {
        let found = "it is compacted: of each participant only the newest record is kept";
        warn(found.to_owned(), "cleanup.policy=delete");
    }
    if (0..SHORT_RETENTION_MS).contains(&settings.retention_ms) {
        let found = format!("records are deleted after {} min", settings.retention_ms / 60_000);
        warn(found, "retention.ms=604800000");
    }
    if settings.unclean_election {
        let found = "unclean.leader.election.enable: acknowledged records can be lost";
        warn(found.to_owned(), "unclean.leader.election.enable=false");
    }
    if settings.max_message_bytes < message_bytes {
        let larger = match purpose {
            Purpose::Payments => "larger rows FAIL",
            Purpose::DeadLetters => "larger dead letters arrive without their payload",
        };
        let found = format!(
            "it takes {} bytes, the rail sends up to {message_bytes}: {larger}",
            settings.max_message_bytes
        );
        warn(found, &format!("max.message.bytes={message_bytes}"));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    const ACLS: Acls<'static> = Acls { prefix: "rails.r", brokers: "b:9092" };

    fn settings() -> TopicSettings {
        TopicSettings {
            min_in_sync: 2,
            cleanup_policy: "delete".to_owned(),
            retention_ms: 604_800_000,
            max_message_bytes: 1_048_588,
            unclean_election: false,
        }
    }

    fn facts() -> TopicFacts {
        TopicFacts {
            partitions: 12,
            leaderless: 0,
            replicas: 3,
            in_sync: 3,
            settings: Some(settings()),
            allowed: None,
        }
    }

    fn judged(facts: &TopicFacts, bytes: u64) -> Vec<Verdict> {
        let checks = topic_checks("t", "t", &ACLS, facts, bytes, Purpose::Payments);
        assert!(checks.iter().all(|check| (check.verdict == Verdict::Ok) == check.mend.is_none()));
        checks.iter().map(|check| check.verdict).collect()
    }

    #[test]
    fn three_replicas_of_which_two_are_needed_are_healthy() {
        assert_eq!(judged(&facts(), 1_000_000), [Verdict::Ok]);
    }

    #[test]
    fn a_topic_that_cannot_be_written_to_fails() {
        for broken in [
            TopicFacts { leaderless: 1, ..facts() },
            TopicFacts { replicas: 1, in_sync: 1, ..facts() },
            TopicFacts { in_sync: 1, ..facts() },
        ] {
            assert_eq!(judged(&broken, 1), [Verdict::Fail], "{broken:?}");
        }
    }

    #[test]
    fn a_topic_that_can_lose_records_is_told() {
        let one = Some(TopicSettings { min_in_sync: 1, ..settings() });
        for weak in [
            TopicFacts { replicas: 1, in_sync: 1, settings: one.clone(), ..facts() },
            TopicFacts { in_sync: 2, ..facts() },
            TopicFacts { settings: one, ..facts() },
        ] {
            assert_eq!(judged(&weak, 1), [Verdict::Warn], "{weak:?}");
        }
        for weak in [
            TopicSettings { cleanup_policy: "compact,delete".to_owned(), ..settings() },
            TopicSettings { retention_ms: 60_000, ..settings() },
            TopicSettings { unclean_election: true, ..settings() },
            TopicSettings { max_message_bytes: 1_000, ..settings() },
        ] {
            let facts = TopicFacts { settings: Some(weak), ..facts() };
            assert_eq!(judged(&facts, 1_000_000), [Verdict::Ok, Verdict::Warn], "{facts:?}");
        }
        let forever = TopicSettings { retention_ms: -1, ..settings() };
        assert_eq!(judged(&TopicFacts { settings: Some(forever), ..facts() }, 1), [Verdict::Ok]);
        assert_eq!(
            judged(&TopicFacts { settings: None, replicas: 2, in_sync: 2, ..facts() }, 1)[1],
            Verdict::Warn
        );
    }

    #[test]
    fn plain_text_is_told_unless_it_stays_on_this_machine() {
        assert_eq!(security("r", "k1:9092,127.0.0.1:9092", "PLAINTEXT").verdict, Verdict::Warn);
        assert_eq!(security("r", "localhost:9092", "PLAINTEXT").verdict, Verdict::Ok);
        assert_eq!(security("r", "k1:9092", "SASL_SSL").verdict, Verdict::Ok);
    }
}
