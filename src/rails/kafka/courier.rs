//! Brings lanes to the producer of the moment, and replaces that producer when it has to be.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode as Code;
use tokio::sync::watch;
use tracing::{error, info, warn};

use super::carrier::{Carrier, End};
use super::properties::Shape;
use super::settings::Settings;
use super::{classify, hand_over};
use crate::delivery::{Lane, Outcome};

/// How long records go alone after a broker refused a batch. The row that was the reason is found
/// by then, and fails.
const ALONE_FOR: Duration = Duration::from_secs(60);

/// The heart of a rail, shared by its callers and its threads.
pub(super) struct Courier {
    pub(super) settings: Arc<Settings>,
    state: Mutex<State>,
    closing: AtomicBool,
    /// How many producers there are.
    open: watch::Sender<usize>,
    /// Topics to ask about.
    questions: mpsc::Sender<Arc<str>>,
}

/// What changes. Rows are handed over under its lock, so that nobody gives a row to a producer
/// that is being emptied.
pub(super) struct State {
    carrier: Slot,
    pub(super) topics: HashMap<Arc<str>, Known>,
    /// Lanes that wait for a producer or for what is asked about their topic. Bounded by the
    /// rail's capacity.
    waiting: Vec<(Arc<Lane>, usize)>,
    /// The smallest `max.message.bytes` of the topics in use, or the user's own `batch.size`.
    batch_bytes: usize,
    /// A topic's `max.message.bytes` could not be read.
    limit_unreadable: bool,
    alone_until: Option<Instant>,
}

enum Slot {
    Empty,
    /// The last one is being emptied.
    Emptying,
    Open(Arc<Carrier>),
}

/// What is known of a topic.
pub(super) enum Known {
    Asked,
    /// It exists, and takes batches up to this size.
    Ready {
        limit: Option<usize>,
        since: Instant,
    },
}

impl Courier {
    pub(super) fn new(settings: Settings, questions: mpsc::Sender<Arc<str>>) -> Self {
        let state = State {
            carrier: Slot::Empty,
            topics: HashMap::new(),
            waiting: Vec::new(),
            batch_bytes: settings.properties.usual_shape().batch_bytes,
            limit_unreadable: false,
            alone_until: None,
        };
        Self {
            settings: Arc::new(settings),
            state: Mutex::new(state),
            closing: AtomicBool::new(false),
            open: watch::Sender::new(0),
            questions,
        }
    }

    /// Makes the first producer, which shows whether librdkafka takes the configuration.
    pub(super) fn open(self: &Arc<Self>) -> Result<(), KafkaError> {
        self.carrier(&mut self.lock()).map(|_| ())
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Nothing is sent any more; the producers' threads report what is under way.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        for (lane, from) in std::mem::take(&mut self.lock().waiting) {
            give_back(&lane, from);
        }
    }

    /// When every producer has ended.
    pub(super) async fn closed(&self) {
        // The sender is ours, so the channel cannot be closed.
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    /// Hands over the rows of a lane from this one on, now or when there is a way to.
    pub(super) fn take(self: &Arc<Self>, lane: Arc<Lane>, from: usize) {
        self.take_locked(&mut self.lock(), lane, from);
    }

    fn take_locked(self: &Arc<Self>, state: &mut State, lane: Arc<Lane>, from: usize) {
        if self.is_closing() || !lane.may_send(self.settings.timeout) {
            return give_back(&lane, from);
        }
        let carrier = match self.carrier(state) {
            Ok(Some(carrier)) => carrier,
            Ok(None) => return state.waiting.push((lane, from)),
            Err(error) => {
                error!(rail = &*self.settings.log.rail, "no producer: {}", self.shown(&error));
                return report_from(&lane, from, &self.unavailable(Code::Fail));
            }
        };
        match hand_over::lane(&self.settings, &mut state.topics, &carrier, &lane, from) {
            hand_over::Handed::Done => {}
            hand_over::Handed::Wait(from) => state.waiting.push((lane, from)),
            hand_over::Handed::Ask(topic, from) => {
                state.topics.insert(Arc::clone(&topic), Known::Asked);
                state.waiting.push((lane, from));
                // Whoever answers ends after us.
                let _ = self.questions.send(topic);
            }
        }
    }

    /// The producer of the moment; nothing while the last one is being emptied.
    fn carrier(self: &Arc<Self>, state: &mut State) -> Result<Option<Arc<Carrier>>, KafkaError> {
        match &state.carrier {
            Slot::Open(carrier) => Ok(Some(Arc::clone(carrier))),
            Slot::Emptying => Ok(None),
            Slot::Empty => {
                let carrier = self.open_carrier(self.shape(state))?;
                state.carrier = Slot::Open(Arc::clone(&carrier));
                Ok(Some(carrier))
            }
        }
    }

    fn open_carrier(self: &Arc<Self>, shape: Shape) -> Result<Arc<Carrier>, KafkaError> {
        let carrier = Carrier::open(self, shape)?;
        self.open.send_modify(|open| *open += 1);
        Ok(carrier)
    }

    pub(super) fn current(&self) -> Option<Arc<Carrier>> {
        match &self.lock().carrier {
            Slot::Open(carrier) => Some(Arc::clone(carrier)),
            Slot::Empty | Slot::Emptying => None,
        }
    }

    fn shape(&self, state: &State) -> Shape {
        Shape {
            batch_bytes: state.batch_bytes,
            one_request: state.limit_unreadable,
            alone: state.alone_until.is_some_and(|until| until > Instant::now()),
        }
    }

    /// Called by a producer's own thread: it ends, and another takes its place when every row of
    /// it is reported.
    pub(super) fn retire(self: &Arc<Self>, carrier: &Arc<Carrier>, end: End) {
        let was_current = self.vacate(carrier, end);
        if end != End::Drained {
            warn!(rail = &*self.settings.log.rail, ?end, "a producer ends with rows under way");
            carrier.empty(end, self.settings.grace());
        }
        let mut state = self.lock();
        if was_current {
            state.carrier = Slot::Empty;
            self.take_waiting(&mut state);
        }
        drop(state);
        self.open.send_modify(|open| *open -= 1);
    }

    fn vacate(&self, carrier: &Arc<Carrier>, end: End) -> bool {
        let mut state = self.lock();
        let was_current = matches!(&state.carrier, Slot::Open(open) if Arc::ptr_eq(open, carrier));
        if was_current {
            state.carrier = Slot::Emptying;
        }
        if end == End::Overdue {
            // Before anything is sent again, it is asked whether anybody is there.
            state.topics.retain(|_, known| matches!(known, Known::Asked));
        }
        was_current
    }

    fn take_waiting(self: &Arc<Self>, state: &mut State) {
        for (lane, from) in std::mem::take(&mut state.waiting) {
            self.take_locked(state, lane, from);
        }
    }

    /// Puts another producer in the place of this one if its batches must look different by now.
    /// This one sends what it has.
    pub(super) fn reshape(self: &Arc<Self>, carrier: &Arc<Carrier>) {
        self.reshape_locked(&mut self.lock(), carrier);
    }

    fn reshape_locked(self: &Arc<Self>, state: &mut State, carrier: &Arc<Carrier>) {
        let shape = self.shape(state);
        let is_current = matches!(&state.carrier, Slot::Open(open) if Arc::ptr_eq(open, carrier));
        if !is_current || carrier.shape == shape || self.is_closing() {
            return;
        }
        match self.open_carrier(shape) {
            Ok(next) => {
                info!(rail = &*self.settings.log.rail, ?shape, "a new producer takes over");
                carrier.drain();
                state.carrier = Slot::Open(next);
            }
            Err(error) => {
                error!(rail = &*self.settings.log.rail, "no new producer: {}", self.shown(&error));
            }
        }
    }

    /// A record for this topic failed: it is asked about before the next is sent. If a broker
    /// refused a batch for good, records go alone for a while.
    pub(super) fn distrust(&self, topic: &str, refused: bool) {
        let mut state = self.lock();
        if matches!(state.topics.get(topic), Some(Known::Ready { .. })) {
            state.topics.remove(topic);
        }
        if refused {
            state.alone_until = Some(Instant::now() + ALONE_FOR);
        }
    }

    /// What was found out about a topic: its limit, if that could be read, or why it cannot be used.
    pub(super) fn answer(self: &Arc<Self>, topic: &Arc<str>, answer: Result<Option<usize>, Code>) {
        let mut state = self.lock();
        let waiting = std::mem::take(&mut state.waiting);
        match answer {
            Ok(limit) => self.learn(&mut state, topic, limit),
            Err(_) => drop(state.topics.remove(topic)),
        }
        for (lane, from) in waiting {
            match answer {
                Err(code) if self.goes_to(&lane, from, topic) => {
                    report_from(&lane, from, &self.unavailable(code));
                }
                _ => self.take_locked(&mut state, lane, from),
            }
        }
    }

    fn learn(self: &Arc<Self>, state: &mut State, topic: &Arc<str>, limit: Option<usize>) {
        let since = Instant::now();
        state.topics.insert(Arc::clone(topic), Known::Ready { limit, since });
        match limit {
            Some(limit) => state.batch_bytes = state.batch_bytes.min(limit),
            None => state.limit_unreadable = true,
        }
        if let Slot::Open(carrier) = &state.carrier {
            let carrier = Arc::clone(carrier);
            self.reshape_locked(state, &carrier);
        }
    }

    fn goes_to(&self, lane: &Lane, from: usize, topic: &Arc<str>) -> bool {
        let row = lane.rows().get(from);
        row.is_some_and(|row| self.settings.topics.of(row).is_ok_and(|of_row| of_row == *topic))
    }

    /// Nothing was sent, whatever class the code has for a row that was.
    fn unavailable(&self, code: Code) -> Outcome {
        Outcome::Unavailable { failure: classify::failure(code), maybe_sent: false }
    }

    fn shown(&self, error: &KafkaError) -> String {
        self.settings.log.redactor.redact(&error.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The rows from this one on that nobody has reported. The relay may have refused some already.
pub(super) fn unreported(lane: &Lane, from: usize) -> impl Iterator<Item = usize> {
    lane.unreported().into_iter().skip_while(move |index| *index < from)
}

/// The rows from this one on were not sent.
pub(super) fn give_back(lane: &Lane, from: usize) {
    report_from(lane, from, &Outcome::NotSent);
}

fn report_from(lane: &Lane, from: usize, outcome: &Outcome) {
    for index in unreported(lane, from) {
        lane.report(index, outcome.clone());
    }
}
