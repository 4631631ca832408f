//! One transactional producer, and the batches that it carries, one after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::config::FromClientConfigAndContext;
use rdkafka::error::KafkaError;
use rdkafka::message::Header;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode as Code;

use super::super::callbacks::reference;
use super::super::headers;
use super::super::properties::Shape;
use super::batch::{Parcel, Plan};
use super::callbacks::{Answer, Answers};
use super::register::{self, Entry};
use super::shared::{Shared, transactional_id};
use super::status::Status;
use crate::delivery::{Outcome, Places, Tenure};
use crate::failpoint::{failpoint, failpoint_soon, is_taken_out};

/// How long is waited for answers at a time: then is looked whether there is any use in it.
const PAUSE: Duration = Duration::from_millis(20);
/// How often is looked whether librdkafka has finished with its records.
const SILENCE_PAUSE: Duration = Duration::from_micros(50);
/// How long the producer is polled at a time; rdkafka's poll spins through its last millisecond.
const SERVE: Duration = Duration::from_secs(1);
/// How often the broker is asked whether it has ended what somebody has left open.
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// How long librdkafka is left alone when it takes no more records.
const FULL_PAUSE: Duration = Duration::from_millis(1);
/// How long the answer of a record that has spoilt its transaction may take to come to us.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// The places of the register's records among the answers: behind every row.
const ANNOUNCEMENT: usize = usize::MAX - 1;
const REGISTER: usize = usize::MAX;

/// Why it is not known what became of a batch, or known to be nothing.
#[derive(Debug)]
pub(super) enum Doubt {
    /// This record failed.
    Record { place: usize, code: Code },
    /// The producer did; by its code, somebody else may have fenced it off.
    Producer(Code),
    /// No answer came in time, or there is no time left to wait for it.
    Silence,
}

impl Doubt {
    pub(super) fn is_fenced(&self) -> bool {
        let (Self::Record { code, .. } | Self::Producer(code)) = self else { return false };
        is_fenced(*code)
    }
}

pub(super) fn is_fenced(code: Code) -> bool {
    matches!(code, Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch)
}

pub(super) struct Session {
    producer: Arc<BaseProducer<Answers>>,
    /// Tells the thread that polls the producer to end.
    over: Arc<AtomicBool>,
    pub(super) shape: Shape,
    shared: Arc<Shared>,
    tenure: Tenure,
    status: Arc<Status>,
}

impl Session {
    /// Makes a producer and fences off everybody who was there before.
    pub(super) fn open(
        shared: &Arc<Shared>,
        tenure: Tenure,
        shape: Shape,
        status: &Arc<Status>,
    ) -> Result<Self, Code> {
        let settings = &shared.settings;
        let mut id = transactional_id(&shared.prefix, shared.rail(), tenure.shard);
        if is_taken_out("fence") {
            // A name of its own fences nobody off.
            id = format!("{id}.{}", uuid::Uuid::new_v4());
        }
        let config = settings.properties.transactional(shape, &id, settings.timeout);
        let producer =
            BaseProducer::from_config_and_context(&config, Answers::new(settings.log.clone()))
                .map_err(code)?;
        let session = Self {
            producer: Arc::new(producer),
            over: Arc::default(),
            shape,
            shared: Arc::clone(shared),
            tenure,
            status: Arc::clone(status),
        };
        session.serve()?;
        failpoint("eos_before_init");
        session.init(Instant::now() + settings.timeout).map_err(code)?;
        failpoint("eos_after_init");
        Ok(session)
    }

    /// Fences everybody off. The broker refuses while it ends a transaction that somebody has left open, and
    /// librdkafka would ask again after half a second: who calls it again makes it ask at once.
    fn init(&self, deadline: Instant) -> Result<(), KafkaError> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.producer.init_transactions(left.min(ASK_AGAIN)) {
                Err(KafkaError::Transaction(error))
                    if error.is_retriable() && !left.is_zero() && !self.shared.is_closing() => {}
                inited => return inited,
            }
        }
    }

    /// Polls the producer in a thread of its own, so that an answer is there as soon as it has come. The producer ends
    /// with it: that may take a while, and whoever comes next fences it off.
    fn serve(&self) -> Result<(), Code> {
        let (producer, over) = (Arc::clone(&self.producer), Arc::clone(&self.over));
        let poll = move || {
            while !over.load(Ordering::Relaxed) {
                producer.poll(SERVE);
            }
        };
        let thread = thread::Builder::new().name(format!("kafka-answers-{}", self.tenure.shard));
        thread.spawn(poll).map(|_| ()).map_err(|_| Code::Fail)
    }

    pub(super) fn client(&self) -> &rdkafka::client::Client<Answers> {
        self.producer.client()
    }

    /// Sends a batch: all of it, then the register's record (unless the batch is to be known without one), then
    /// the commit. Only when that has succeeded, the rows are reported.
    pub(super) fn transact(&self, plan: &Plan, entered: Option<&Places>) -> Result<(), Doubt> {
        failpoint("eos_before_begin");
        let deadline = Instant::now() + self.shared.settings.overdue_after();
        self.producer.begin_transaction().map_err(|error| Doubt::Producer(code(error)))?;
        let mut offsets = Places::new();
        if let Some(origin) = entered {
            if is_taken_out("register_order") {
                self.enter(plan, &offsets, origin, deadline)?;
            }
            self.announce(plan, deadline)?;
        }
        let announced = usize::from(entered.is_some());
        let references = self.send_rows(plan, announced, &mut offsets, deadline)?;
        failpoint("eos_sent");
        if let Some(origin) = entered
            && !is_taken_out("register_order")
        {
            self.enter(plan, &offsets, origin, deadline)?;
        }
        self.await_silence(deadline);
        failpoint("eos_before_commit");
        failpoint_soon("eos_committing");
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        self.producer.commit_transaction(left).map_err(|error| Doubt::Producer(code(error)))?;
        self.shared.contact.answered();
        failpoint("eos_committed");
        for (parcel, reference) in plan.parcels.iter().zip(references) {
            let delivered = Outcome::Delivered { reference: Some(reference), rail_code: None };
            parcel.lane.report(parcel.index, delivered);
        }
        Ok(())
    }

    /// The last answer comes a moment before librdkafka counts its record as done, and a commit that meets it before looks
    /// again 100 ms later.
    fn await_silence(&self, deadline: Instant) {
        while self.producer.in_flight_count() > 0 && Instant::now() < deadline {
            thread::sleep(SILENCE_PAUSE);
        }
    }

    /// Returns where each row came to stand, when those who were announced are there too.
    fn send_rows(
        &self,
        plan: &Plan,
        announced: usize,
        offsets: &mut Places,
        deadline: Instant,
    ) -> Result<Vec<String>, Doubt> {
        let mark = register::mark(&self.shared.scope, plan.batch);
        for (place, parcel) in plan.parcels.iter().enumerate() {
            self.send_row(place, parcel, &mark, deadline)?;
            if place == plan.parcels.len() / 2 {
                failpoint("eos_sending");
            }
        }
        let mut references = vec![String::new(); plan.parcels.len()];
        self.await_answers(
            plan.parcels.len() + announced,
            deadline,
            |place, partition, offset| {
                let Some(parcel) = plan.parcels.get(place) else { return };
                let topic = &*parcel.topic;
                references[place] = reference(topic, partition, offset);
                let reached = offsets.entry(topic.to_owned()).or_default().entry(partition);
                let at = reached.or_insert(offset);
                *at = (*at).max(offset);
                self.shared.reach.passed(topic, partition, offset);
            },
        )?;
        Ok(references)
    }

    fn send_row(
        &self,
        place: usize,
        parcel: &Parcel,
        mark: &str,
        deadline: Instant,
    ) -> Result<(), Doubt> {
        let settings = &self.shared.settings;
        let row = &parcel.lane.rows()[parcel.index];
        let own = headers::headers(row, settings.headers, &settings.source);
        let marked = headers::owned(&own)
            .insert(Header { key: register::HEADER, value: Some(mark.as_bytes()) });
        let record = BaseRecord::with_opaque_to(&parcel.topic, Box::new(place))
            .key(row.participant_id.as_str())
            .payload(row.payload.as_str())
            .headers(marked);
        self.send(record, deadline).map_err(|code| match code {
            // It takes nothing any more: whatever is next is not to blame.
            _ if is_fenced(code) => Doubt::Producer(code),
            Code::State | Code::Fatal | Code::QueueFull => {
                self.first_failure(Vec::new()).unwrap_or(Doubt::Producer(code))
            }
            _ => Doubt::Record { place, code },
        })
    }

    /// The first record that failed by itself, among these answers or those that come in a moment.
    fn first_failure(&self, mut answers: Vec<(usize, Answer)>) -> Option<Doubt> {
        let until = Instant::now() + LAST_WORDS;
        loop {
            let first = answers.into_iter().find_map(|(place, answer)| match answer {
                // librdkafka takes back what it has not sent when another record has spoilt the transaction.
                Ok(_) | Err(Code::PurgeQueue | Code::PurgeInflight) => None,
                Err(code) => Some(blame(place, code)),
            });
            let left = until.saturating_duration_since(Instant::now());
            if first.is_some() || left.is_zero() {
                return first;
            }
            answers = self.producer.context().wait(left);
        }
    }

    /// Says in the register that a batch begins, which nobody reads: the register's partition joins the transaction
    /// together with those of the rows, and its last record need not wait for that.
    fn announce(&self, plan: &Plan, deadline: Instant) -> Result<(), Doubt> {
        let key = register::announcement_key(&self.shared.scope, self.tenure.shard);
        let number = plan.batch.number.to_string();
        self.send_to_register(ANNOUNCEMENT, &key, number.as_bytes(), deadline)
    }

    /// Writes the batch into the register, and waits until it is there.
    fn enter(
        &self,
        plan: &Plan,
        offsets: &Places,
        origin: &Places,
        deadline: Instant,
    ) -> Result<(), Doubt> {
        let entry = Entry {
            batch: plan.batch.number,
            rows: i32::try_from(plan.parcels.len()).unwrap_or(i32::MAX),
            epoch: self.tenure.epoch,
            offsets: offsets.clone(),
            origin: origin.clone(),
        };
        let key = register::key(&self.shared.scope, self.tenure.shard);
        let value = serde_json::to_vec(&entry).map_err(|_| Doubt::Silence)?;
        self.send_to_register(REGISTER, &key, &value, deadline)?;
        self.await_answers(1, deadline, |_, partition, offset| {
            self.shared.reach.passed(&self.shared.register_topic, partition, offset);
        })
    }

    fn send_to_register(
        &self,
        place: usize,
        key: &str,
        value: &[u8],
        deadline: Instant,
    ) -> Result<(), Doubt> {
        let record = BaseRecord::with_opaque_to(&self.shared.register_topic, Box::new(place))
            .partition(self.tenure.shard.into())
            .key(key)
            .payload(value);
        self.send(record, deadline).map_err(Doubt::Producer)
    }

    fn send<P: rdkafka::message::ToBytes + ?Sized>(
        &self,
        mut record: BaseRecord<'_, str, P, Box<usize>>,
        deadline: Instant,
    ) -> Result<(), Code> {
        loop {
            match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((error, back))
                    if code_of(&error) == Code::QueueFull && Instant::now() < deadline =>
                {
                    record = back;
                    thread::sleep(FULL_PAUSE);
                }
                Err((error, _)) => return Err(code_of(&error)),
            }
        }
    }

    /// Waits until so many records are acknowledged. The first that is not ends the wait.
    fn await_answers(
        &self,
        count: usize,
        deadline: Instant,
        mut acknowledged: impl FnMut(usize, i32, i64),
    ) -> Result<(), Doubt> {
        let mut left = count;
        loop {
            let answers = self.producer.context().wait(PAUSE);
            if let Some(code) = answers.iter().find_map(|(_, answer)| answer.err()) {
                return Err(self.first_failure(answers).unwrap_or(Doubt::Producer(code)));
            }
            for (place, answer) in answers {
                answer.map(|(partition, offset)| acknowledged(place, partition, offset)).ok();
                left -= 1;
            }
            if left == 0 {
                return Ok(());
            }
            // That we have heard of a successor is good to know, but nothing to rely on.
            let over = self.status.over.load(Ordering::Relaxed) && !is_taken_out("fence");
            if over || self.shared.is_closing() || Instant::now() >= deadline {
                return Err(Doubt::Silence);
            }
            if let Some((code, _)) = self.producer.client().fatal_error() {
                return Err(Doubt::Producer(code));
            }
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// A record of the register is no row's: it fails with its producer.
fn blame(place: usize, code: Code) -> Doubt {
    if place >= ANNOUNCEMENT { Doubt::Producer(code) } else { Doubt::Record { place, code } }
}

fn code(error: KafkaError) -> Code {
    code_of(&error)
}

fn code_of(error: &KafkaError) -> Code {
    error.rdkafka_error_code().unwrap_or(Code::Fail)
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;
    use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

    use super::super::super::settings::Settings;
    use super::super::super::testing::{config, lane};
    use super::super::super::topics::Topics;
    use super::*;

    fn parcel() -> Parcel {
        Parcel { lane: lane().0, index: 0, topic: "t".into(), kept: true }
    }

    /// librdkafka then says `_STATE` of whatever comes next.
    #[test]
    fn a_record_that_spoils_the_transaction_is_blamed_and_not_the_one_behind_it() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("t", 1, 1).unwrap();
        let mut config = config("delivery_timeout_seconds = 10");
        config.brokers = Some(cluster.bootstrap_servers());
        let topics = Topics::new("sepa", &config).unwrap();
        let settings = Settings::new("sepa", "rails.sepa", &config, topics).unwrap();
        let shape = settings.properties.usual_shape();
        let shared = Arc::new(Shared::new(settings, "trestle", "register".to_owned(), 1));
        let tenure = Tenure { shard: 0, epoch: 1 };
        let session = Session::open(&shared, tenure, shape, &Arc::default()).unwrap();
        session.producer.begin_transaction().unwrap();
        let refused = [RDKafkaRespErr::RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE];
        cluster.request_errors(RDKafkaApiKey::Produce, &refused);
        let (parcel, deadline) = (parcel(), Instant::now() + Duration::from_secs(10));
        let mut place = 0;
        let doubt = loop {
            assert!(Instant::now() < deadline, "it takes {place} records and more");
            match session.send_row(place, &parcel, "trestle/sepa/0/1", deadline) {
                Ok(()) => place += 1,
                Err(doubt) => break doubt,
            }
            // Each of them a request of its own, so that the first alone is refused.
            thread::sleep(Duration::from_millis(5));
        };
        assert!(
            matches!(doubt, Doubt::Record { place: 0, code: Code::MessageSizeTooLarge }),
            "{doubt:?} after {place} records"
        );
    }
}
