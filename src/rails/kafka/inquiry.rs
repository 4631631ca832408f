//! Asks the cluster about a topic before the first record is sent to it.
//!
//! Whatever this finds wrong, no row was sent, which could not be said afterwards. And librdkafka
//! knows nothing of a topic's `max.message.bytes`: a batch above it is refused whole.

use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::types::{RDKafkaErrorCode as Code, RDKafkaRespErr};
use tracing::{info, warn};

use super::callbacks::Log;
use super::carrier::Carrier;
use super::courier::Courier;
use super::settings::Settings;

const LIMIT: &str = "max.message.bytes";

/// Answers one question after the other until the courier is gone. One thread is enough: what
/// takes long concerns the whole cluster.
pub(super) fn start(
    courier: Weak<Courier>,
    questions: mpsc::Receiver<Arc<str>>,
) -> std::io::Result<()> {
    thread::Builder::new()
        .name("kafka-topics".to_owned())
        .spawn(move || answer_all(&courier, &questions))
        .map(|_| ())
}

fn answer_all(courier: &Weak<Courier>, questions: &mpsc::Receiver<Arc<str>>) {
    while let Ok(first) = questions.recv() {
        // Kept while there are questions, because each client has connections of its own.
        let mut admin = None;
        let mut next = Some(first);
        while let Some(topic) = next {
            let Some(courier) = courier.upgrade() else { return };
            answer(&courier, &topic, &mut admin);
            next = questions.try_recv().ok();
        }
    }
}

fn answer(courier: &Arc<Courier>, topic: &Arc<str>, admin: &mut Option<AdminClient<Log>>) {
    let settings = &courier.settings;
    let Some(carrier) = courier.current() else {
        // The producer was just given up: what it could not do is as good an answer.
        return courier.answer(topic, Err(Code::BrokerTransportFailure));
    };
    let found = exists(&carrier, topic, settings.question_timeout());
    let answer = found.map(|()| limit(settings, topic, admin));
    match &answer {
        Ok(limit) => info!(rail = &*settings.log.rail, %topic, limit, "the topic is there"),
        Err(code) => warn!(rail = &*settings.log.rail, %topic, "the topic cannot be used: {code}"),
    }
    courier.answer(topic, answer);
}

fn exists(carrier: &Carrier, topic: &str, timeout: Duration) -> Result<(), Code> {
    let metadata = match carrier.client().fetch_metadata(Some(topic), timeout) {
        Ok(metadata) => metadata,
        Err(error) => {
            let code = error.rdkafka_error_code().unwrap_or(Code::BrokerTransportFailure);
            return Err(carrier.callbacks().trouble().unwrap_or(code));
        }
    };
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
        return Err(Code::UnknownTopicOrPartition);
    };
    match found.error() {
        Some(error) if error != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Err(error.into()),
        _ if found.partitions().is_empty() => Err(Code::UnknownTopicOrPartition),
        _ => Ok(()),
    }
}

/// The topic's `max.message.bytes`; nothing where it cannot be read, because the user lacks the
/// right to describe configurations.
fn limit(settings: &Settings, topic: &str, admin: &mut Option<AdminClient<Log>>) -> Option<usize> {
    let found = ask_limit(settings, topic, admin);
    if found.is_none() {
        warn!(
            rail = &*settings.log.rail,
            topic, "{LIMIT} of the topic cannot be read: allow DescribeConfigs on it"
        );
    }
    found
}

fn ask_limit(
    settings: &Settings,
    topic: &str,
    admin: &mut Option<AdminClient<Log>>,
) -> Option<usize> {
    let config = settings.properties.admin();
    let admin = match admin {
        Some(admin) => admin,
        None => {
            let made = AdminClient::from_config_and_context(&config, settings.log.clone()).ok()?;
            admin.insert(made)
        }
    };
    let timeout = Some(settings.question_timeout());
    let options = AdminOptions::new().request_timeout(timeout).operation_timeout(timeout);
    let topics = [ResourceSpecifier::Topic(topic)];
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let described = runtime.block_on(admin.describe_configs(&topics, &options)).ok()?;
    let resource = described.into_iter().next()?.ok()?;
    resource.get(LIMIT)?.value.as_ref()?.parse().ok()
}
