//! `delivery = "exactly_once"`: one transactional producer for each shard that this worker owns.
//!
//! This file is the rail as the relay sees it. Each `shard` has a thread, which takes the shard over (a
//! `session` with a producer of its own, `evidence` of what became of the batch before) and then carries
//! its batches: a `batch` becomes a transaction, whose last record goes into the `register`.
//! Besides, `watch` looks where the topics end, keeps `contact` with the brokers, and ends an `abstention`;
//! `examination` asks what `trestle doctor` wants to know. docs/exactly-once.md has the protocol.

mod abstention;
mod batch;
mod callbacks;
mod contact;
mod evidence;
mod examination;
mod reach;
mod reading;
mod register;
mod session;
mod shard;
mod shared;
mod status;
mod stretches;
mod survey;
mod verdicts;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rdkafka::config::FromClientConfig;
use rdkafka::producer::BaseProducer;

use super::settings::Settings;
use super::topics::{self, Topics};
use super::{check_name, destination};
use crate::config::{ConfigError, KafkaRailConfig};
use crate::delivery::{Failure, Lane, Places, Row, ShardKeeper, Tenure};
use crate::rails::{Rail, Sharded};
pub use examination::{asking_id, examine_transactions};
use shard::{Command, Shard};
use shared::Shared;
use status::Status;

/// The topic that remembers the last batch of each shard.
pub fn register_topic(rail: &str, config: &KafkaRailConfig) -> String {
    config.register_topic.clone().unwrap_or_else(|| format!("trestle.register.{rail}"))
}

/// A Kafka rail: `delivery = "exactly_once"`.
pub struct ExactlyOnceRail {
    shared: Arc<Shared>,
    only_destination: Option<Arc<str>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    shards: HashMap<i16, Post>,
    /// Whether the database has said which shards are ours.
    told: bool,
    /// The topics whose ends went with the last claim.
    noted: Arc<BTreeSet<String>>,
}

/// A shard of ours, as its thread is reached.
struct Post {
    tenure: Tenure,
    status: Arc<Status>,
    commands: mpsc::Sender<Command>,
    /// How often it had been taken up when the last claim was made.
    asked_at: usize,
    /// The lanes of a batch that is not complete yet.
    gathered: Vec<Arc<Lane>>,
}

impl Post {
    fn is_over(&self) -> bool {
        self.status.over.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.status.over.store(true, Ordering::Relaxed);
        // It may be waiting for something to do.
        let _ = self.commands.send(Command::Recover);
    }
}

impl ExactlyOnceRail {
    /// The rail called `name`. Finds wrong properties; whether a broker is there shows later.
    pub fn new(name: &str, config: &KafkaRailConfig) -> Result<Self, ConfigError> {
        let key = format!("rails.{name}");
        let settings = Settings::new(name, &key, config, Topics::new(name, config)?)?;
        let register = register_topic(name, config);
        check_name(&format!("{key}.register_topic"), &register)?;
        let only_destination = settings.topics.only().map(|topic| destination(name, &topic));
        let shape = settings.properties.usual_shape();
        let tried = settings.properties.transactional(shape, "trestle", settings.timeout);
        // Shows whether librdkafka takes the configuration; nothing is asked of a broker.
        if let Err(error) = <BaseProducer as FromClientConfig>::from_config(&tried) {
            let problem = settings.log.redactor.redact(&error.to_string());
            return Err(ConfigError::Wrong {
                key: format!("{key}.properties"),
                problem: format!("are not taken by librdkafka: {problem}"),
            });
        }
        let prefix = &config.transactional_id_prefix;
        let shared = Arc::new(Shared::new(settings, prefix, register, config.shards));
        Ok(Self { shared, only_destination, state: Mutex::new(State::default()) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_up(&self, tenure: Tenure) -> Option<Post> {
        let keeper = Arc::clone(self.shared.keeper.get()?);
        let (commands, received) = mpsc::channel();
        let status = Arc::new(Status::default());
        let shard =
            Shard::new(Arc::clone(&self.shared), keeper, tenure, Arc::clone(&status), received);
        self.shared.open.send_modify(|open| *open += 1);
        let thread = thread::Builder::new().name(format!("kafka-shard-{}", tenure.shard));
        if let Err(error) = thread.spawn(move || shard.run()) {
            tracing::error!(rail = self.shared.rail(), %error, "no thread for a shard");
            self.shared.open.send_modify(|open| *open -= 1);
            return None;
        }
        Some(Post { tenure, status, commands, asked_at: 0, gathered: Vec::new() })
    }
}

impl Rail for ExactlyOnceRail {
    fn destination(&self, row: &Row) -> Result<Arc<str>, Failure> {
        if let Some(only) = &self.only_destination
            && row.header(topics::HEADER).is_none()
        {
            return Ok(Arc::clone(only));
        }
        let settings = &self.shared.settings;
        settings.topics.of(row).map(|topic| destination(&settings.log.rail, &topic))
    }

    fn only_destination(&self) -> Option<Arc<str>> {
        self.only_destination.clone()
    }

    fn longest_send(&self) -> Duration {
        self.shared.settings.timeout
    }

    fn capacity(&self) -> usize {
        self.shared.settings.capacity
    }

    fn deliver(&self, lane: Arc<Lane>) {
        if self.shared.is_closing() {
            return lane.give_back_the_rest();
        }
        let mut state = self.lock();
        let post = lane.batch().and_then(|batch| state.shards.get_mut(&batch.shard));
        match post {
            Some(post) if !post.is_over() => post.gathered.push(lane),
            // Its owner, whoever that is now, finds out that it was never sent.
            _ => lane.leave_undecided(None),
        }
    }

    fn abandon(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.shared.close();
        // They may be waiting for something to do.
        self.lock().shards.values().for_each(Post::end);
        let mut open = self.shared.open.subscribe();
        Box::pin(async move {
            // The sender is ours, so the channel cannot be closed.
            let _ = open.wait_for(|open| *open == 0).await;
        })
    }

    fn sharded(&self) -> Option<&dyn Sharded> {
        Some(self)
    }
}

impl Sharded for ExactlyOnceRail {
    fn begin(&self, keeper: Arc<dyn ShardKeeper>) {
        if self.shared.keeper.set(keeper).is_ok() {
            watch::start(&self.shared);
        }
    }

    fn own(&self, tenures: &[Tenure]) {
        let mut state = self.lock();
        state.told = true;
        // One that is over makes room for its successor when its thread has ended.
        state.shards.retain(|_, post| {
            if !tenures.contains(&post.tenure) && !post.is_over() {
                post.end();
            }
            !post.status.ended.load(Ordering::Acquire)
        });
        if self.shared.is_closing() {
            return;
        }
        for tenure in tenures {
            if !state.shards.contains_key(&tenure.shard)
                && let Some(post) = self.take_up(*tenure)
            {
                state.shards.insert(tenure.shard, post);
            }
        }
    }

    fn give_up(&self, tenure: Tenure) {
        if let Some(post) = self.lock().shards.get(&tenure.shard)
            && post.tenure == tenure
        {
            post.end();
        }
    }

    fn recover(&self, tenure: Tenure) {
        if let Some(post) = self.lock().shards.get(&tenure.shard)
            && post.tenure == tenure
        {
            post.status.ready.store(false, Ordering::Release);
            let _ = post.commands.send(Command::Recover);
        }
    }

    fn ready(&self) -> Vec<Tenure> {
        let ready = |post: &&Post| post.status.ready.load(Ordering::Acquire) && !post.is_over();
        self.lock().shards.values().filter(ready).map(|post| post.tenure).collect()
    }

    fn is_settling(&self) -> bool {
        let state = self.lock();
        !state.told || state.shards.values().any(|post| !post.is_over())
    }

    fn abstains(&self) -> bool {
        let state = self.lock();
        let posts = state.shards.values().filter(|post| !post.is_over());
        // Who stands still asks for nothing: it has no broker either when nobody of us has one.
        let silent_for = self.shared.contact.silent_for();
        let without = posts.map(|post| post.status.sought_for().max(silent_for));
        if self.shared.abstention.consider(without) {
            tracing::warn!(
                rail = self.shared.rail(),
                "no broker can be reached: this worker gives up its shards until one can"
            );
        }
        self.shared.abstention.is_on()
    }

    fn places(&self) -> Places {
        let places = self.shared.reach.places();
        let mut state = self.lock();
        state.noted = Arc::new(places.keys().cloned().collect());
        for post in state.shards.values_mut() {
            post.asked_at = post.status.take_ups.load(Ordering::Acquire);
        }
        places
    }

    fn seal(&self) {
        let mut state = self.lock();
        let noted = Arc::clone(&state.noted);
        for post in state.shards.values_mut().filter(|post| !post.gathered.is_empty()) {
            post.status.ready.store(false, Ordering::Release);
            let lanes = std::mem::take(&mut post.gathered);
            let carry =
                Command::Carry { lanes, noted: Arc::clone(&noted), asked_at: post.asked_at };
            if let Err(mpsc::SendError(Command::Carry { lanes, .. })) = post.commands.send(carry) {
                lanes.iter().for_each(|lane| lane.leave_undecided(None));
            }
        }
    }
}

impl Drop for ExactlyOnceRail {
    fn drop(&mut self) {
        self.shared.close();
    }
}
