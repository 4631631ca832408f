//! Which topic is read, through which rail, and which rows of the ledger belong to it.

use crate::cli::CliError;
use crate::config::{Config, KafkaRailConfig, Ordering, RailConfig};
use crate::delivery::DEAD_LETTERS;
use crate::rails::kafka::usual_topic;

#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) rail: &'a str,
    /// Brokers and properties.
    pub(super) kafka: &'a KafkaRailConfig,
    /// None where there is one for each tenant.
    pub(super) topic: Option<String>,
    /// Rails whose rows are somewhere else, whatever their references look like.
    pub(super) other_rails: Vec<&'a str>,
    /// Rails whose rows have no order.
    pub(super) unordered: Vec<String>,
}

impl<'a> Target<'a> {
    pub(super) fn choose(
        config: &'a Config,
        rail: Option<&'a str>,
        topic: Option<&str>,
    ) -> Result<Self, CliError> {
        let (rail, kafka) = chosen(config, rail, topic)?;
        let topic = match topic {
            Some(topic) => Some(topic.to_owned()),
            None => own_topic(config, rail, kafka)?,
        };
        let is_unordered = |rail: &RailConfig| rail.ordering() == Ordering::None;
        let unordered = config.rails.iter().filter(|(_, rail)| is_unordered(rail));
        let unordered = unordered.map(|(name, _)| name.clone()).chain([DEAD_LETTERS.to_owned()]);
        Ok(Self {
            rail,
            kafka,
            topic,
            other_rails: other_rails(config, kafka),
            unordered: unordered.collect(),
        })
    }
}

fn usage<T>(problem: impl Into<String>) -> Result<T, CliError> {
    Err(CliError::Usage(problem.into()))
}

/// The rail that was asked for or, where there is no doubt, the one that there is.
fn chosen<'a>(
    config: &'a Config,
    rail: Option<&'a str>,
    topic: Option<&str>,
) -> Result<(&'a str, &'a KafkaRailConfig), CliError> {
    if let Some(rail) = rail {
        return named(config, rail);
    }
    let dead = config.dlq.as_ref().and_then(|dlq| dlq.topic.as_deref());
    if topic.is_some() && topic == dead {
        return named(config, DEAD_LETTERS);
    }
    let kafka = config.rails.iter().filter_map(|(name, rail)| match rail {
        RailConfig::Kafka(kafka) => Some((name.as_str(), kafka)),
        RailConfig::Http(_) => None,
    });
    let all: Vec<_> = kafka.collect();
    let has_topic = |rail: &KafkaRailConfig| {
        topic.is_some_and(|topic| rail.topic == topic || rail.topics.iter().any(|t| t == topic))
    };
    let fitting: Vec<_> = all.iter().filter(|(_, rail)| has_topic(rail)).collect();
    match (all.as_slice(), fitting.as_slice()) {
        ([], _) => usage("no Kafka rail is configured: there is no topic to read"),
        ([only], _) => Ok(*only),
        (_, [only]) => Ok(**only),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            usage(format!("--rail is needed: there are {}", names.join(", ")))
        }
    }
}

fn named<'a>(
    config: &'a Config,
    rail: &'a str,
) -> Result<(&'a str, &'a KafkaRailConfig), CliError> {
    let carrier = match &config.dlq {
        Some(dlq) if rail == DEAD_LETTERS && dlq.is_ledger() => {
            return usage("--rail dlq has no topic: dead letters stay in the ledger");
        }
        Some(dlq) if rail == DEAD_LETTERS => dlq.rail.as_str(),
        _ => rail,
    };
    match config.rails.get(carrier) {
        Some(RailConfig::Kafka(kafka)) => Ok((rail, kafka)),
        Some(RailConfig::Http(_)) => {
            usage(format!("--rail {rail} is an HTTP rail: it has no topic"))
        }
        None => {
            let known: Vec<&str> = config.rails.keys().map(String::as_str).collect();
            usage(format!("--rail {rail} is not configured: there is {}", known.join(", ")))
        }
    }
}

fn own_topic(
    config: &Config,
    rail: &str,
    kafka: &KafkaRailConfig,
) -> Result<Option<String>, CliError> {
    if rail == DEAD_LETTERS {
        return Ok(config.dlq.as_ref().and_then(|dlq| dlq.topic.clone()));
    }
    Ok(usual_topic(rail, kafka)?)
}

fn other_rails<'a>(config: &'a Config, kafka: &KafkaRailConfig) -> Vec<&'a str> {
    let elsewhere = |rail: &RailConfig| match rail {
        RailConfig::Kafka(other) => other.brokers != kafka.brokers,
        RailConfig::Http(_) => true,
    };
    let rails = config.rails.iter().filter(|(_, rail)| elsewhere(rail));
    let mut names: Vec<&str> = rails.map(|(name, _)| name.as_str()).collect();
    let carrier = config.dlq.as_ref().and_then(|dlq| config.rails.get(&dlq.rail));
    if carrier.is_some_and(elsewhere) {
        names.push(DEAD_LETTERS);
    }
    names
}
