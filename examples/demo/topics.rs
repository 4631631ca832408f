//! The topics of the demo. The broker makes none by itself, as in production.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::types::RDKafkaErrorCode;

use crate::Result;

/// Where the payments go, as `stack/trestle.toml` says.
pub(crate) const PAYMENTS: &str = "payments";
/// Where the dead letters go.
pub(crate) const DEAD_LETTERS: &str = "payments.dlq";

const TOPICS: [(&str, i32); 2] = [(PAYMENTS, 6), (DEAD_LETTERS, 1)];

/// Makes what is missing, and leaves alone what is there.
pub(crate) async fn make(brokers: &str) -> Result<()> {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create()?;
    let wanted: Vec<NewTopic<'_>> = TOPICS
        .iter()
        .map(|(name, partitions)| NewTopic::new(name, *partitions, TopicReplication::Fixed(1)))
        .collect();
    for made in admin.create_topics(&wanted, &AdminOptions::new()).await? {
        match made {
            Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
            Err((name, code)) => return Err(format!("cannot make the topic {name}: {code}").into()),
        }
    }
    Ok(())
}
