//! Asks the cluster about a topic before the first record is sent to it.
//!
//! Whatever this finds wrong, no row was sent, which could not be said afterwards. And librdkafka
//! knows nothing of a topic's `max.message.bytes`: a batch above it is refused whole.

use std::sync::{Arc, Weak, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::metadata::{Metadata, MetadataTopic};
use rdkafka::types::{RDKafkaErrorCode as Code, RDKafkaRespErr};
use tracing::{debug, info, warn};

use super::callbacks::Log;
use super::carrier::Carrier;
use super::courier::Courier;
use super::settings::Settings;
use super::state::Found;

pub(super) const LIMIT: &str = "max.message.bytes";

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
            if let Some(code) = answer(&courier, &topic, &mut admin) {
                for other in questions.try_iter() {
                    courier.answer(&other, Err(code));
                }
            }
            next = questions.try_recv().ok();
        }
    }
}

/// Answers about one topic. Returns why the cluster says nothing, if that is the answer: it is the
/// same for every other topic.
fn answer(
    courier: &Arc<Courier>,
    topic: &Arc<str>,
    admin: &mut Option<AdminClient<Log>>,
) -> Option<Code> {
    let settings = &courier.settings;
    let Some(carrier) = courier.current() else {
        // The producer was just given up: what it could not do is as good an answer.
        courier.answer(topic, Err(Code::BrokerTransportFailure));
        return None;
    };
    let metadata = metadata(&carrier, topic, settings.question_timeout());
    let silent = metadata.as_ref().err().copied();
    let answer = metadata
        .and_then(|metadata| partitions(&metadata, topic))
        .map(|partitions| found_with(partitions, settings, topic, admin));
    match &answer {
        Ok(Found { partitions, limit, .. }) => {
            info!(rail = &*settings.log.rail, %topic, partitions, limit, "the topic is there");
        }
        // The breaker warns of it, once.
        Err(code) => debug!(rail = &*settings.log.rail, %topic, "the topic cannot be used: {code}"),
    }
    courier.answer(topic, answer);
    silent
}

pub(super) fn partitions(metadata: &Metadata, topic: &str) -> Result<usize, Code> {
    found(metadata, topic).map(|topic| topic.partitions().len())
}

fn metadata(carrier: &Carrier, topic: &str, timeout: Duration) -> Result<Metadata, Code> {
    let trouble = &carrier.callbacks().trouble;
    let metadata = carrier.client().fetch_metadata(Some(topic), timeout);
    metadata.inspect(|_| trouble.is_over()).map_err(|error| {
        let code = error.rdkafka_error_code().unwrap_or(Code::BrokerTransportFailure);
        trouble.lately().unwrap_or(code)
    })
}

/// The topic, if it is there.
pub(super) fn found<'a>(metadata: &'a Metadata, topic: &str) -> Result<&'a MetadataTopic, Code> {
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
        return Err(Code::UnknownTopicOrPartition);
    };
    match found.error() {
        Some(error) if error != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => Err(error.into()),
        _ if found.partitions().is_empty() => Err(Code::UnknownTopicOrPartition),
        _ => Ok(found),
    }
}

/// A topic with so many partitions, and what its settings say. They cannot be read where the user lacks the right to
/// describe configurations.
pub(super) fn found_with(
    partitions: usize,
    settings: &Settings,
    topic: &str,
    admin: &mut Option<AdminClient<Log>>,
) -> Found {
    let described = ask_settings(settings, topic, admin);
    let limit = described.as_ref().and_then(limit);
    if limit.is_none() {
        warn!(
            rail = &*settings.log.rail,
            topic, "{LIMIT} of the topic cannot be read: allow DescribeConfigs on it"
        );
    }
    let policy = described.as_ref().and_then(|described| value(described, "cleanup.policy"));
    Found { partitions, limit, keeps: policy == Some("delete"), at: Instant::now() }
}

fn limit(described: &ConfigResource) -> Option<usize> {
    value(described, LIMIT)?.parse().ok()
}

fn value<'a>(described: &'a ConfigResource, name: &str) -> Option<&'a str> {
    described.get(name)?.value.as_deref()
}

/// Where it cannot be read, the caller decides who needs to know.
pub(super) fn ask_limit(
    settings: &Settings,
    topic: &str,
    admin: &mut Option<AdminClient<Log>>,
) -> Option<usize> {
    ask_settings(settings, topic, admin).as_ref().and_then(limit)
}

fn ask_settings(
    settings: &Settings,
    topic: &str,
    admin: &mut Option<AdminClient<Log>>,
) -> Option<ConfigResource> {
    let config = settings.properties.admin();
    let admin = match admin {
        Some(admin) => admin,
        None => {
            let made = AdminClient::from_config_and_context(&config, settings.log.clone()).ok()?;
            admin.insert(made)
        }
    };
    describe(admin, topic, settings.question_timeout())
}

/// The settings of a topic; nothing where they may not be read. Not to be called by a task of a
/// runtime: it waits.
pub(super) fn describe<C: ClientContext>(
    admin: &AdminClient<C>,
    topic: &str,
    timeout: Duration,
) -> Option<ConfigResource> {
    let timeout = Some(timeout);
    let options = AdminOptions::new().request_timeout(timeout).operation_timeout(timeout);
    let topics = [ResourceSpecifier::Topic(topic)];
    let runtime = tokio::runtime::Builder::new_current_thread().build().ok()?;
    let described = runtime.block_on(admin.describe_configs(&topics, &options)).ok()?;
    described.into_iter().next()?.ok()
}
