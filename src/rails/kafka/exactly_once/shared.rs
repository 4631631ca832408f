//! What all shards of a rail have in common.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{Client, ClientContext};
use rdkafka::config::FromClientConfigAndContext;
use rdkafka::consumer::BaseConsumer;
use rdkafka::types::RDKafkaErrorCode as Code;
use tokio::sync::watch;

use super::super::callbacks::Log;
use super::super::inquiry;
use super::super::properties::Shape;
use super::super::settings::Settings;
use super::super::state::Found;
use super::abstention::Abstention;
use super::contact::Contact;
use super::reach::Reach;
use super::register;
use crate::delivery::ShardKeeper;

/// What is known of a topic is asked again after so long.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// The broker knows a producer by it: `trestle.payments.3`.
pub(super) fn transactional_id(prefix: &str, rail: &str, who: impl std::fmt::Display) -> String {
    format!("{prefix}.{rail}.{who}")
}

pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) prefix: String,
    /// What our batches are known by, among those of other databases and rails.
    pub(super) scope: String,
    pub(super) register_topic: String,
    pub(super) shards: i16,
    pub(super) keeper: OnceLock<Arc<dyn ShardKeeper>>,
    pub(super) reach: Reach,
    pub(super) abstention: Abstention,
    pub(super) contact: Contact,
    topics: Mutex<HashMap<Arc<str>, Found>>,
    admin: Mutex<Option<AdminClient<Log>>>,
    /// See `survey`.
    pub(super) surveyor: Mutex<Option<Arc<BaseConsumer<Log>>>>,
    /// The smallest `max.message.bytes` of the topics used so far, or the user's own `batch.size`.
    batch_bytes: AtomicUsize,
    closing: AtomicBool,
    /// How many threads of shards there are.
    pub(super) open: watch::Sender<usize>,
}

impl Shared {
    pub(super) fn new(
        settings: Settings,
        prefix: &str,
        register_topic: String,
        shards: i16,
    ) -> Self {
        Self {
            batch_bytes: AtomicUsize::new(settings.properties.usual_shape().batch_bytes),
            scope: register::scope(prefix, &settings.log.rail),
            settings,
            prefix: prefix.to_owned(),
            reach: Reach::new(&register_topic),
            abstention: Abstention::default(),
            contact: Contact::default(),
            register_topic,
            shards,
            keeper: OnceLock::new(),
            topics: Mutex::new(HashMap::new()),
            admin: Mutex::new(None),
            surveyor: Mutex::new(None),
            closing: AtomicBool::new(false),
            open: watch::Sender::new(0),
        }
    }

    pub(super) fn rail(&self) -> &str {
        &self.settings.log.rail
    }

    /// What the batches of the next producer must look like.
    pub(super) fn shape(&self, alone: bool) -> Shape {
        Shape { batch_bytes: self.batch_bytes.load(Ordering::Relaxed), alone }
    }

    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// What has to be known of a topic before anything is sent to it.
    pub(super) fn topic<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &Arc<str>,
    ) -> Result<Found, Code> {
        let known = self.topics.lock().unwrap_or_else(PoisonError::into_inner).get(topic).copied();
        if let Some(found) = known.filter(|found| found.at.elapsed() < KNOWN_FOR) {
            return Ok(found);
        }
        let partitions = self.partitions(client, topic)?;
        let mut admin = self.admin.lock().unwrap_or_else(PoisonError::into_inner);
        let found = inquiry::found_with(partitions, &self.settings, topic, &mut admin);
        self.batch_bytes.fetch_min(found.limit.unwrap_or(usize::MAX), Ordering::Relaxed);
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.insert(Arc::clone(topic), found);
        Ok(found)
    }

    /// How many a topic has. Whatever a broker says of it, it says something.
    pub(super) fn partitions<C: ClientContext>(
        &self,
        client: &Client<C>,
        topic: &str,
    ) -> Result<usize, Code> {
        let metadata = client
            .fetch_metadata(Some(topic), self.settings.question_timeout())
            .map_err(|error| error.rdkafka_error_code().unwrap_or(Code::BrokerTransportFailure))?;
        self.contact.answered();
        inquiry::partitions(&metadata, topic)
    }

    /// Makes the register where it is missing. Says why it cannot be used.
    pub(super) fn prepare_register<C: ClientContext>(
        &self,
        client: &Client<C>,
    ) -> Result<(), String> {
        let needed = usize::from(self.shards.unsigned_abs());
        match self.partitions(client, &self.register_topic) {
            Ok(count) if count >= needed => Ok(()),
            Ok(count) => Err(format!(
                "the topic {} has {count} partitions, but the rail has {needed} shards: add partitions",
                self.register_topic
            )),
            Err(Code::UnknownTopicOrPartition | Code::UnknownTopic) => self.make_register(needed),
            Err(code) => Err(format!("the topic {} cannot be read: {code}", self.register_topic)),
        }
    }

    fn make_register(&self, partitions: usize) -> Result<(), String> {
        let config = self.settings.properties.admin();
        let explain = |words: String| {
            format!(
                "the topic {} is missing and cannot be made ({words}): make it with {partitions} partitions and cleanup.policy=compact",
                self.register_topic
            )
        };
        let admin = AdminClient::from_config_and_context(&config, self.settings.log.clone())
            .map_err(|error| explain(error.to_string()))?;
        let count = i32::try_from(partitions).unwrap_or(i32::MAX);
        // As many replicas as the cluster gives a topic by default.
        let topic = NewTopic::new(&self.register_topic, count, TopicReplication::Fixed(-1))
            .set("cleanup.policy", "compact");
        let timeout = Some(self.settings.question_timeout());
        let options = AdminOptions::new().request_timeout(timeout).operation_timeout(timeout);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| explain(error.to_string()))?;
        let made = runtime.block_on(admin.create_topics([&topic], &options));
        match made.map_err(|error| explain(error.to_string()))?.into_iter().next() {
            Some(Err((_, code))) if code != Code::TopicAlreadyExists => {
                Err(explain(code.to_string()))
            }
            _ => Ok(()),
        }
    }
}
