//! One producer from its making to its end, and the thread that watches over it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::message::ToBytes;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, PurgeConfig};
use rdkafka::types::RDKafkaErrorCode as Code;
use tracing::warn;

use super::acquaintance::Acquaintance;
use super::callbacks::{Callbacks, Parcel};
use super::classify;
use super::courier::Courier;
use super::properties::Shape;
use super::under_way::UnderWay;
use crate::delivery::{Failure, Outcome};

/// How often is looked whether anything is overdue. Answers do not wait for it. Not more often, because rdkafka's poll
/// spins through its last millisecond.
const TICK: Duration = Duration::from_millis(200);
/// A partition forgets a producer that it has heard nothing of for a day, unless it is configured
/// otherwise (`producer.id.expiration.ms`).
const LIFETIME: Duration = Duration::from_secs(6 * 3_600);
/// How long emptying may take when nobody waits for it.
const UNHURRIED: Duration = Duration::from_secs(1);

/// A producer and what it carries.
pub(super) struct Carrier {
    producer: BaseProducer<Callbacks>,
    pub(super) under_way: UnderWay,
    pub(super) shape: Shape,
    acquaintances: Mutex<HashMap<Arc<str>, Arc<Acquaintance>>>,
    opened: Instant,
    /// Another one takes the rows now: this one ends when its own are reported.
    draining: AtomicBool,
}

/// Why a producer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Drained,
    Overdue,
    Fatal,
    Abandoned,
}

impl Carrier {
    /// Makes a producer. Connections are made in the background.
    pub(super) fn open(courier: &Arc<Courier>, shape: Shape) -> Result<Arc<Self>, KafkaError> {
        let config = courier.settings.properties.producer(shape);
        let callbacks =
            Callbacks::new(Arc::clone(&courier.settings), Arc::downgrade(courier), shape.alone);
        let producer = BaseProducer::from_config_and_context(&config, callbacks)?;
        let carrier = Arc::new(Self {
            producer,
            under_way: UnderWay::default(),
            shape,
            acquaintances: Mutex::new(HashMap::new()),
            opened: Instant::now(),
            draining: AtomicBool::new(false),
        });
        let (courier, watched) = (Arc::downgrade(courier), Arc::clone(&carrier));
        thread::Builder::new()
            .name("kafka-rail".to_owned())
            .spawn(move || watch(&courier, watched))
            .map_err(|error| KafkaError::ClientCreation(error.to_string()))?;
        Ok(carrier)
    }

    pub(super) fn callbacks(&self) -> &Callbacks {
        self.producer.context()
    }

    pub(super) fn client(&self) -> &rdkafka::client::Client<Callbacks> {
        self.producer.client()
    }

    /// Gives one record to librdkafka, which copies it. What it does not take, it never sends.
    pub(super) fn send<K, P>(&self, record: BaseRecord<'_, K, P, Box<Parcel>>) -> Result<(), Code>
    where
        K: ToBytes + ?Sized,
        P: ToBytes + ?Sized,
    {
        self.producer
            .send(record)
            .map_err(|(error, _)| error.rdkafka_error_code().unwrap_or(Code::InvalidArgument))
    }

    /// Which partitions of a topic know this producer.
    pub(super) fn acquaintance(&self, topic: &Arc<str>, partitions: usize) -> Arc<Acquaintance> {
        let mut all = self.acquaintances.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Acquaintance::new(partitions));
        let own = all.entry(Arc::clone(topic)).or_insert_with(made);
        if own.partitions() != partitions {
            *own = made();
        }
        Arc::clone(own)
    }

    /// Whether brokers may begin to forget it.
    pub(super) fn is_old(&self) -> bool {
        self.opened.elapsed() > LIFETIME
    }

    pub(super) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Whether librdkafka has stopped it for good. Its error callback gives only the reason, from
    /// which nobody can tell.
    pub(super) fn has_failed(&self) -> bool {
        self.producer.client().fatal_error().is_some()
    }

    /// Whether this producer has to end now.
    pub(super) fn end(&self, courier: &Courier) -> Option<End> {
        let oldest = self.under_way.oldest();
        if courier.is_closing() {
            Some(End::Abandoned)
        } else if self.has_failed() {
            Some(End::Fatal)
        } else if oldest.is_some_and(|at| at.elapsed() >= courier.settings.overdue_after()) {
            Some(End::Overdue)
        } else if oldest.is_none() && self.draining.load(Ordering::Relaxed) {
            Some(End::Drained)
        } else {
            None
        }
    }

    /// Takes everything back, and reports every row. Nobody may send any more.
    pub(super) fn empty(&self, end: End, grace: Duration) {
        let cause = self.callbacks().cause.get_or_init(|| self.cause(end)).clone();
        let purge = PurgeConfig::default().queue().non_blocking();
        if end == End::Fatal {
            // librdkafka sends nothing more, but what it sent may still be answered.
            self.producer.purge(purge);
            self.poll_until_empty(grace / 2);
        }
        // Not blocking, because a thread of librdkafka that looks up a host name does not listen.
        // It does listen before it sends anything.
        self.producer.purge(purge.inflight());
        self.poll_until_empty(grace / 2);
        let in_doubt = Outcome::Unavailable { failure: cause, maybe_sent: true };
        let left = self.under_way.report_the_rest(&in_doubt);
        if left > 0 {
            warn!(rows = left, "librdkafka kept rows when purged: they are in doubt");
        }
    }

    fn poll_until_empty(&self, longest: Duration) {
        let deadline = Instant::now() + longest;
        while self.under_way.oldest().is_some() && Instant::now() < deadline {
            self.producer.poll(Duration::from_millis(5));
        }
    }

    fn cause(&self, end: End) -> Failure {
        match end {
            End::Fatal => {
                let code =
                    self.producer.client().fatal_error().map_or(Code::Fatal, |(code, _)| code);
                let mut failure = classify::failure(code);
                failure.message.push_str(": the producer had to be replaced");
                failure
            }
            End::Abandoned => Failure::new("KAFKA_ABANDONED", "given up while shutting down"),
            End::Overdue | End::Drained => {
                let code = self.callbacks().trouble.lately().unwrap_or(Code::MessageTimedOut);
                let mut failure = classify::failure(code);
                failure.message.push_str(": not acknowledged within delivery_timeout_seconds");
                failure
            }
        }
    }
}

/// Serves the callbacks until the producer has to end. The thread is the producer's own, so that
/// its destruction, which may take a while, holds up nobody.
fn watch(courier: &Weak<Courier>, carrier: Arc<Carrier>) {
    loop {
        carrier.producer.poll(TICK);
        let Some(courier) = courier.upgrade() else {
            carrier.empty(End::Abandoned, UNHURRIED);
            return;
        };
        if let Some(end) = carrier.end(&courier) {
            courier.retire(&carrier, end);
            return;
        }
        courier.reshape(&carrier);
    }
}
