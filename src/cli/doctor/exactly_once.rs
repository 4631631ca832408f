//! Rails that deliver exactly once: transactions, the register, and what has to be read back.

use super::acls::Acls;
use super::check::Check;
use super::kafka::{alter, replication};
use crate::cli::CliError;
use crate::config::{Config, Delivery, KafkaRailConfig, RailConfig};
use crate::rails::kafka::{
    Cluster, Operation, TopicFacts, Trouble, asking_id, examine, examine_transactions,
    known_topics, register_topic,
};

/// What a bridge does with the register, and with its topics besides writing.
const REGISTER: [Operation; 4] =
    [Operation::Read, Operation::Write, Operation::Describe, Operation::DescribeConfigs];
const READ: [Operation; 1] = [Operation::Read];

pub(super) async fn checks(config: &Config) -> Result<Vec<Check>, CliError> {
    let mut checks = Vec::new();
    for (name, rail) in &config.rails {
        let RailConfig::Kafka(kafka) = rail else { continue };
        if kafka.delivery == Delivery::ExactlyOnce {
            checks.extend(rail_checks(name, kafka).await?);
        }
    }
    Ok(checks)
}

async fn rail_checks(name: &str, kafka: &KafkaRailConfig) -> Result<Vec<Check>, CliError> {
    let (rail, asking) = (name.to_owned(), kafka.clone());
    let register = register_topic(name, kafka);
    let mut topics = known_topics(name, kafka)?;
    topics.push(register.clone());
    let examined = tokio::task::spawn_blocking(move || {
        // Whoever finds no broker need not ask it for more.
        let cluster = match examine(&rail, &asking, &topics)? {
            Ok(cluster) => cluster,
            Err(_) => return Ok(None),
        };
        Ok(Some((cluster, examine_transactions(&rail, &asking)?)))
    });
    let examined = examined.await.map_err(|error| CliError::Runtime(error.into()))?;
    let key = format!("rails.{name}");
    let Some((cluster, admission)) = examined.map_err(CliError::Config)? else {
        return Ok(vec![Check::skip(format!("{key} transactions"), "no broker to ask")]);
    };
    let subject = Subject { key: &key, name, kafka };
    let mut checks = vec![subject.transactions(&admission)];
    checks.extend(subject.topics(&cluster, &register));
    Ok(checks)
}

/// The rail that is looked at.
struct Subject<'a> {
    /// `rails.payments`
    key: &'a str,
    name: &'a str,
    kafka: &'a KafkaRailConfig,
}

impl Subject<'_> {
    fn brokers(&self) -> &str {
        self.kafka.brokers.as_deref().unwrap_or_default()
    }

    fn acls(&self) -> Acls<'_> {
        Acls { prefix: self.key, brokers: self.brokers() }
    }

    fn transactions(&self, admission: &Result<(), Trouble>) -> Check {
        let check = format!("{} transactions", self.key);
        let id = asking_id(self.name, self.kafka);
        let Err(Trouble { code, words }) = admission else {
            return Check::ok(check, format!("a producer is let in as {id}"));
        };
        let (key, brokers) = (self.key, self.brokers());
        let mend = match code.as_str() {
            "KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED" => format!(
                "kafka-acls.sh --bootstrap-server {brokers} --add --allow-principal User:… \
                 --operation Write --operation Describe --transactional-id {} \
                 --resource-pattern-type prefixed",
                self.kafka.transactional_id_prefix
            ),
            "KAFKA_INVALID_TRANSACTION_TIMEOUT" => format!(
                "make {key}.delivery_timeout_seconds shorter, or transaction.max.timeout.ms of the \
                 brokers at least {}",
                (self.kafka.delivery_timeout_seconds + 5) * 1_000
            ),
            _ => format!(
                "bring the brokers back that hold __transaction_state; a cluster of fewer than three needs \
                 transaction.state.log.replication.factor and transaction.state.log.min.isr to fit; or \
                 delivery = \"idempotent\" in [{key}]"
            ),
        };
        Check::fail(check, format!("no transactional producer: {code}: {words}"), mend)
    }

    fn topics(&self, cluster: &Cluster, register: &str) -> Vec<Check> {
        let mut checks = Vec::new();
        for (topic, facts) in &cluster.topics {
            match facts {
                Err(trouble) if topic == register => checks.push(self.no_register(topic, trouble)),
                Ok(facts) if topic == register => checks.extend(self.register(topic, facts)),
                // That it is missing, or hidden from us, is told with the other topics.
                Err(_) => {}
                Ok(facts) => checks.extend(self.reading(topic, facts)),
            }
        }
        checks
    }

    fn no_register(&self, topic: &str, trouble: &Trouble) -> Check {
        let check = format!("{} register {topic}", self.key);
        let Trouble { code, words } = trouble;
        if code == "KAFKA_TOPIC_AUTHORIZATION_FAILED" {
            let mend = self.acls().add(&REGISTER, &[topic]);
            return Check::fail(check, format!("{code}: {words}"), mend);
        }
        let mend = format!(
            "kafka-topics.sh --bootstrap-server {} --create --topic {topic} --partitions {} \
             --replication-factor 3 --config cleanup.policy=compact --config min.insync.replicas=2",
            self.brokers(),
            self.kafka.shards
        );
        let found = format!("{code}: the first worker makes it, if it may");
        Check::warn(check, found, mend)
    }

    fn register(&self, topic: &str, facts: &TopicFacts) -> Vec<Check> {
        let check = format!("{} register {topic}", self.key);
        let alter = |setting: &str| alter(self.brokers(), topic, setting);
        let mut checks = vec![replication(&check, facts, &alter)];
        let shards = usize::from(self.kafka.shards.unsigned_abs());
        if facts.partitions < shards {
            let found = format!("{} partitions for {shards} shards", facts.partitions);
            let mend = format!(
                "kafka-topics.sh --bootstrap-server {} --alter --topic {topic} --partitions {shards}",
                self.brokers()
            );
            checks.push(Check::fail(&check, found, mend));
        }
        checks.extend(self.missing(&check, topic, facts, &REGISTER[..3], "no shard can be used"));
        let Some(settings) = &facts.settings else {
            let mend = self.acls().add(&[Operation::DescribeConfigs], &[topic]);
            let found = "its settings may not be read: whether it is compacted is not known";
            checks.push(Check::warn(&check, found, mend));
            return checks;
        };
        if settings.cleanup_policy != "compact" {
            let found = format!(
                "cleanup.policy is {}: it forgets the last batch of a shard that stands still",
                settings.cleanup_policy
            );
            checks.push(Check::fail(&check, found, alter("cleanup.policy=compact")));
        }
        if settings.unclean_election {
            let found = "unclean.leader.election.enable: the last batches can be lost";
            let mend = alter("unclean.leader.election.enable=false");
            checks.push(Check::warn(&check, found, mend));
        }
        checks
    }

    /// What is in a topic is read back after a takeover.
    fn reading(&self, topic: &str, facts: &TopicFacts) -> Option<Check> {
        let check = format!("{} rights on {topic}", self.key);
        let why = "what became of a dead worker's batch cannot be found out";
        self.missing(&check, topic, facts, &READ, why)
    }

    /// A right that is missing, where the broker says what we have.
    fn missing(
        &self,
        check: &str,
        topic: &str,
        facts: &TopicFacts,
        needed: &[Operation],
        why: &str,
    ) -> Option<Check> {
        let allowed = facts.allowed.as_ref()?;
        let missing: Vec<Operation> =
            needed.iter().copied().filter(|one| !allowed.contains(one)).collect();
        let words: Vec<String> = missing.iter().map(|one| format!("{one:?}")).collect();
        let found = format!("may not {}: {why}", words.join(", "));
        (!missing.is_empty())
            .then(|| Check::fail(check, found, self.acls().add(&missing, &[topic])))
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;
    use crate::rails::kafka::TopicSettings;
    use figment::Figment;
    use figment::providers::{Format as _, Toml};

    fn kafka() -> KafkaRailConfig {
        let toml = "kind = \"kafka\"\nbrokers = \"b:9092\"\ntopic = \"t\"\nshards = 4\n\
            transactional_id_prefix = \"pay\"";
        Figment::from(Toml::string(toml)).extract().unwrap()
    }

    fn settings() -> TopicSettings {
        TopicSettings {
            min_in_sync: 2,
            cleanup_policy: "compact".to_owned(),
            retention_ms: 604_800_000,
            max_message_bytes: 1_048_588,
            unclean_election: false,
        }
    }

    fn facts() -> TopicFacts {
        TopicFacts {
            partitions: 4,
            leaderless: 0,
            replicas: 3,
            in_sync: 3,
            settings: Some(settings()),
            allowed: Some(REGISTER.to_vec()),
        }
    }

    fn judged(facts: &TopicFacts) -> Vec<(Verdict, String)> {
        let kafka = kafka();
        let subject = Subject { key: "rails.r", name: "r", kafka: &kafka };
        let told = |check: Check| {
            assert_eq!(check.verdict == Verdict::Ok, check.mend.is_none(), "{check:?}");
            (check.verdict, check.mend.unwrap_or_default())
        };
        subject.register("reg", facts).into_iter().map(told).collect()
    }

    #[test]
    fn a_register_with_a_partition_for_each_shard_that_is_compacted_is_healthy() {
        assert_eq!(judged(&facts()), [(Verdict::Ok, String::new())]);
        let silent = TopicFacts { allowed: None, ..facts() };
        assert_eq!(judged(&silent).len(), 1, "a broker that does not say what we may");
    }

    #[test]
    fn what_is_wrong_with_a_register_comes_with_the_line_that_mends_it() {
        let with = |settings| TopicFacts { settings: Some(settings), ..facts() };
        let policy =
            |policy: &str| TopicSettings { cleanup_policy: policy.to_owned(), ..settings() };
        for (wrong, verdict, mend) in [
            (TopicFacts { partitions: 3, ..facts() }, Verdict::Fail, "--partitions 4"),
            (with(policy("delete")), Verdict::Fail, "--add-config cleanup.policy=compact"),
            (with(policy("compact,delete")), Verdict::Fail, "--add-config cleanup.policy=compact"),
            (
                with(TopicSettings { unclean_election: true, ..settings() }),
                Verdict::Warn,
                "unclean.leader.election.enable=false",
            ),
            (
                TopicFacts { settings: None, ..facts() },
                Verdict::Warn,
                "DescribeConfigs --topic reg",
            ),
            (
                TopicFacts { allowed: Some(vec![Operation::Describe]), ..facts() },
                Verdict::Fail,
                "--operation Read --operation Write --topic reg",
            ),
        ] {
            let checks = judged(&wrong);
            let told = checks.iter().any(|(told, line)| *told == verdict && line.contains(mend));
            assert!(told, "{checks:?}");
        }
    }

    #[test]
    fn a_producer_that_gets_no_transactions_is_told_what_would_give_it_some() {
        let kafka = kafka();
        let subject = Subject { key: "rails.r", name: "r", kafka: &kafka };
        assert_eq!(subject.transactions(&Ok(())).found, "a producer is let in as pay.r.doctor");
        for (code, mend) in [
            (
                "KAFKA_TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
                "--operation Write --operation Describe --transactional-id pay --resource-pattern-type prefixed",
            ),
            ("KAFKA_INVALID_TRANSACTION_TIMEOUT", "rails.r.delivery_timeout_seconds shorter"),
            ("KAFKA_TIMED_OUT", "__transaction_state"),
        ] {
            let trouble = Trouble { code: code.to_owned(), words: "no".to_owned() };
            let check = subject.transactions(&Err(trouble));
            assert_eq!(check.verdict, Verdict::Fail);
            assert!(check.mend.as_ref().unwrap().contains(mend), "{check:?}");
        }
    }
}
