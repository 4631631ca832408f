//! Brings lanes to the producer of the moment.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaErrorCode as Code;
use tokio::sync::watch;
use tracing::error;

use super::callbacks::Callbacks;
use super::carrier::Carrier;
use super::properties::Shape;
use super::settings::Settings;
use super::state::{Known, Slot, State};
use super::{classify, hand_over};
use crate::delivery::{Lane, Outcome};

/// The heart of a rail, shared by its callers and its threads.
pub(super) struct Courier {
    pub(super) settings: Arc<Settings>,
    state: Mutex<State>,
    closing: AtomicBool,
    /// How many producers there are.
    pub(super) open: watch::Sender<usize>,
    /// Topics to ask about.
    questions: mpsc::Sender<Arc<str>>,
}

impl Courier {
    pub(super) fn new(settings: Settings, questions: mpsc::Sender<Arc<str>>) -> Self {
        Self {
            state: Mutex::new(State::new(settings.properties.usual_shape())),
            settings: Arc::new(settings),
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
        self.take_locked(&mut self.lock(), lane, from, None);
    }

    /// The same, after this producer has brought the row before: its partition knows it.
    pub(super) fn go_on(
        self: &Arc<Self>,
        lane: Arc<Lane>,
        from: usize,
        topic: &Arc<str>,
        by: &Callbacks,
    ) {
        let mut state = self.lock();
        let same = matches!(&state.carrier, Slot::Open(open) if std::ptr::eq(open.callbacks(), by));
        self.take_locked(&mut state, lane, from, Some(topic).filter(|_| same));
    }

    pub(super) fn take_locked(
        self: &Arc<Self>,
        state: &mut State,
        lane: Arc<Lane>,
        from: usize,
        known_in: Option<&Arc<str>>,
    ) {
        if self.is_closing() || !lane.may_send(self.settings.timeout) {
            return give_back(&lane, from);
        }
        let carrier = match self.carrier(state) {
            Ok(Some(carrier)) if !carrier.has_failed() => carrier,
            Ok(_) => return state.waiting.push((lane, from)),
            Err(error) => {
                error!(rail = &*self.settings.log.rail, "no producer: {}", self.shown(&error));
                return report_from(&lane, from, &self.unavailable(Code::Fail));
            }
        };
        let settings = &self.settings;
        match hand_over::lane(settings, &mut state.topics, &carrier, &lane, from, known_in) {
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
                let carrier = self.open_carrier(state.shape())?;
                state.carrier = Slot::Open(Arc::clone(&carrier));
                Ok(Some(carrier))
            }
        }
    }

    pub(super) fn open_carrier(self: &Arc<Self>, shape: Shape) -> Result<Arc<Carrier>, KafkaError> {
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

    pub(super) fn take_waiting(self: &Arc<Self>, state: &mut State) {
        for (lane, from) in std::mem::take(&mut state.waiting) {
            self.take_locked(state, lane, from, None);
        }
    }

    /// Nothing was sent, whatever class the code has for a row that was.
    pub(super) fn unavailable(&self, code: Code) -> Outcome {
        Outcome::Unavailable { failure: classify::failure(code), maybe_sent: false }
    }

    pub(super) fn shown(&self, error: &KafkaError) -> String {
        self.settings.log.redactor.redact(&error.to_string())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
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

/// The rows from this one on that nobody has reported all have this outcome.
pub(super) fn report_from(lane: &Lane, from: usize, outcome: &Outcome) {
    for index in unreported(lane, from) {
        lane.report(index, outcome.clone());
    }
}
