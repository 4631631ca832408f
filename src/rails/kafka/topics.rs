//! Which topic a row goes to.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::{ConfigError, KafkaRailConfig};
use crate::delivery::{Failure, Row};

/// The header in which a row names its topic.
pub(super) const HEADER: &str = "topic";
const RAIL_TYPE: &str = "{rail_type}";
const TENANT: &str = "{tenant}";
/// Kafka's own limit for a name.
const MAX_LENGTH: usize = 249;

/// The topics of one rail.
#[derive(Debug)]
pub(super) enum Topics {
    /// Dead letters: whatever their headers say, they go here.
    Fixed(Arc<str>),
    Chosen {
        usual: Usual,
        allowed: BTreeSet<Arc<str>>,
    },
}

/// Where a row goes that names no topic.
#[derive(Debug)]
pub(super) enum Usual {
    One(Arc<str>),
    /// What stands before and after the tenant.
    OfTenant(String, String),
}

impl Topics {
    pub(super) fn new(rail: &str, config: &KafkaRailConfig) -> Result<Self, ConfigError> {
        let key = format!("rails.{rail}.topic");
        let template = config.topic.replace(RAIL_TYPE, rail);
        check_name(&key, &template.replacen(TENANT, "tenant", 1))?;
        for topic in &config.topics {
            check_name(&format!("rails.{rail}.topics"), topic)?;
        }
        let usual = match template.split_once(TENANT) {
            Some((before, after)) => Usual::OfTenant(before.to_owned(), after.to_owned()),
            None => Usual::One(template.into()),
        };
        let allowed = config.topics.iter().map(|topic| topic.as_str().into()).collect();
        Ok(Self::Chosen { usual, allowed })
    }

    pub(super) fn fixed(key: &str, topic: &str) -> Result<Self, ConfigError> {
        check_name(key, topic)?;
        Ok(Self::Fixed(topic.into()))
    }

    /// The topic of a row, or why there is none: that does not change by trying again.
    pub(super) fn of(&self, row: &Row) -> Result<Arc<str>, Failure> {
        let (usual, allowed) = match self {
            Self::Fixed(topic) => return Ok(Arc::clone(topic)),
            Self::Chosen { usual, allowed } => (usual, allowed),
        };
        if let Some(named) = row.header(HEADER) {
            return allowed.get(named).cloned().ok_or_else(not_allowed);
        }
        match usual {
            Usual::One(topic) => Ok(Arc::clone(topic)),
            Usual::OfTenant(before, after) => match row.tenant_id {
                Some(tenant) => Ok(format!("{before}{tenant}{after}").into()),
                None => Err(Failure::new(
                    "TENANT_MISSING",
                    "the rail's topic contains {tenant}, but the row has no tenant_id",
                )),
            },
        }
    }

    /// The topic of a row that names none, unless it depends on the tenant.
    pub(super) fn usual(&self) -> Option<&str> {
        match self {
            Self::Fixed(topic) | Self::Chosen { usual: Usual::One(topic), .. } => Some(topic),
            Self::Chosen { usual: Usual::OfTenant(..), .. } => None,
        }
    }

    /// The topic of every row, where there is no other.
    pub(super) fn only(&self) -> Option<Arc<str>> {
        match self {
            Self::Fixed(topic) => Some(Arc::clone(topic)),
            Self::Chosen { usual: Usual::One(topic), allowed } if allowed.is_empty() => {
                Some(Arc::clone(topic))
            }
            Self::Chosen { .. } => None,
        }
    }
}

/// Without the name: it is the user's header.
fn not_allowed() -> Failure {
    Failure::new(
        "TOPIC_NOT_ALLOWED",
        "the topic that the row names in its headers is not among the rail's `topics`",
    )
}

pub(super) fn check_name(key: &str, topic: &str) -> Result<(), ConfigError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let problem = if topic.contains(['{', '}']) {
        "may contain {rail_type} and, once, {tenant}: nothing else in braces"
    } else if topic.is_empty() || topic.len() > MAX_LENGTH || topic == "." || topic == ".." {
        "must have from 1 to 249 characters and be neither . nor .."
    } else if !topic.chars().all(allowed) {
        "is no name of a topic: they consist of a-z A-Z 0-9 . _ -"
    } else {
        return Ok(());
    };
    Err(ConfigError::Wrong { key: key.to_owned(), problem: problem.to_owned() })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::testing::config;
    use super::*;

    fn topics(topic: &str, others: &[&str]) -> Result<Topics, ConfigError> {
        let mut config = config("");
        config.topic = topic.to_owned();
        config.topics = others.iter().map(|topic| (*topic).to_owned()).collect();
        Topics::new("sepa", &config)
    }

    #[test]
    fn a_template_is_filled_with_rail_and_tenant() {
        let topics = topics("pay.{rail_type}.{tenant}.v1", &[]).unwrap();
        let mut row = Row::example(1);
        assert_eq!(topics.of(&row).unwrap_err().error_code, "TENANT_MISSING");
        row.tenant_id = Some(Uuid::nil());
        let expected = format!("pay.sepa.{}.v1", Uuid::nil());
        assert_eq!(&*topics.of(&row).unwrap(), expected);
        assert_eq!(topics.only(), None);
    }

    #[test]
    fn a_row_names_only_a_topic_that_is_listed() {
        let topics = topics("usual", &["urgent"]).unwrap();
        let mut row = Row::example(1);
        assert_eq!(&*topics.of(&row).unwrap(), "usual");
        row.headers.push(("topic".to_owned(), "urgent".to_owned()));
        assert_eq!(&*topics.of(&row).unwrap(), "urgent");
        row.headers[0].1 = "usual".to_owned();
        let failure = topics.of(&row).unwrap_err();
        assert_eq!(failure.error_code, "TOPIC_NOT_ALLOWED");
    }

    #[test]
    fn a_dead_letter_goes_to_the_fixed_topic_whatever_its_headers_say() {
        let topics = Topics::fixed("dlq.topic", "dead").unwrap();
        let mut row = Row::example(1);
        row.headers.push(("topic".to_owned(), "urgent".to_owned()));
        assert_eq!(&*topics.of(&row).unwrap(), "dead");
        assert_eq!(topics.only().as_deref(), Some("dead"));
    }

    #[test]
    fn a_wrong_template_is_refused_with_its_key() {
        for wrong in ["", "a b", "{participant}", "{tenant}{tenant}", ".."] {
            let message = topics(wrong, &[]).unwrap_err().to_string();
            assert!(message.contains("`rails.sepa.topic`"), "{message}");
        }
        assert!(
            topics("fine", &["not fine"]).unwrap_err().to_string().contains("rails.sepa.topics")
        );
    }
}
