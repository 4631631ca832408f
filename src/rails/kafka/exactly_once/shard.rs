//! The thread of one shard: takes it over, carries its batches, and starts again after any doubt.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rdkafka::types::RDKafkaErrorCode as Code;
use tracing::{debug, error, info, warn};

use super::super::classify;
use super::super::properties::Shape;
use super::batch::{Plan, plan};
use super::evidence::{Blind, Reader};
use super::session::{Doubt, Session, is_fenced};
use super::shared::Shared;
use super::status::Status;
use super::survey::ends_of;
use super::verdicts::Verdicts;
use super::watch::KEEP_UP;
use crate::admin::metrics;
use crate::delivery::{Class, Denied, Evidence, Lane, Outcome, Places, ShardKeeper, Stand, Tenure};
use crate::failpoint::hurried;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How often a shard with nothing to do looks around.
const IDLE_TICK: Duration = Duration::from_secs(1);
/// A batch that speaks for itself is entered all the same when the last entry is older: a database that has lost more than
/// that is known by the register to be behind, also where retention has deleted the records meanwhile.
const ENTER_EVERY: Duration = Duration::from_secs(60);
/// How long records go alone after a broker refused a batch, so that it shows which of them it meant.
const ALONE_FOR: Duration = Duration::from_secs(60);

/// What the thread is asked to do.
pub(super) enum Command {
    /// The lanes of a batch, the topics whose ends were noted when it was claimed, and how often the shard
    /// had been taken up by then.
    Carry {
        lanes: Vec<Arc<Lane>>,
        noted: Arc<BTreeSet<String>>,
        asked_at: usize,
    },
    Recover,
}

/// Why the thread goes on or ends.
enum Next {
    TakeUp,
    End,
}

pub(super) struct Shard {
    pub(super) shared: Arc<Shared>,
    pub(super) keeper: Arc<dyn ShardKeeper>,
    pub(super) tenure: Tenure,
    pub(super) status: Arc<Status>,
    pub(super) commands: mpsc::Receiver<Command>,
    verdicts: Verdicts,
    alone_until: Option<Instant>,
    /// The last batch that is decided or was carried; no batch before that is known.
    last_batch: i64,
    /// When the database was last told where the topics end.
    noted_at: Instant,
    /// Where each topic ended before the shard's first record there.
    origin: Places,
    /// When this session has last entered it in the register.
    entered_at: Option<Instant>,
}

impl Shard {
    pub(super) fn new(
        shared: Arc<Shared>,
        keeper: Arc<dyn ShardKeeper>,
        tenure: Tenure,
        status: Arc<Status>,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            shared,
            keeper,
            tenure,
            status,
            commands,
            verdicts: Verdicts::default(),
            alone_until: None,
            last_batch: -1,
            noted_at: Instant::now(),
            origin: Places::new(),
            entered_at: None,
        }
    }

    /// Until the shard is given up or lost.
    pub(super) fn run(mut self) {
        let mut pause = FIRST_PAUSE;
        while !self.is_over() {
            match self.take_up() {
                Ok(session) => {
                    pause = FIRST_PAUSE;
                    self.status.ready.store(true, Ordering::Release);
                    self.keeper.changed();
                    let next = self.carry(&session);
                    self.status.ready.store(false, Ordering::Release);
                    drop(session);
                    if matches!(next, Next::End) {
                        break;
                    }
                }
                Err(Setback::Over) => break,
                Err(Setback::Later(words)) => {
                    let (rail, shard) = (self.shared.rail(), self.tenure.shard);
                    // A register that was just made has no leaders for a moment: nobody need be told of that.
                    if pause == FIRST_PAUSE {
                        info!(rail, shard, "the shard cannot be used yet: {words}");
                    } else {
                        warn!(rail, shard, "the shard cannot be used yet: {words}");
                    }
                    self.rest(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
        self.end();
    }

    fn is_over(&self) -> bool {
        self.status.over.load(Ordering::Relaxed) || self.shared.is_closing()
    }

    fn rest(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.is_over() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(mut self) {
        self.status.over.store(true, Ordering::Relaxed);
        // What is in the database already is for whoever is next.
        while let Ok(command) = self.commands.try_recv() {
            if let Command::Carry { lanes, .. } = command {
                lanes.iter().for_each(|lane| lane.leave_undecided(None));
            }
        }
        // Whoever is next reads the topics from there on.
        self.note_ends();
        // Lost ones are not ours to release.
        if let Err(Denied::Away(words)) = self.keeper.release(self.tenure) {
            warn!(
                rail = self.shared.rail(),
                shard = self.tenure.shard,
                "the shard could not be given up, its lease will expire: {words}"
            );
        }
        self.status.ended.store(true, Ordering::Release);
        self.shared.open.send_modify(|open| *open -= 1);
    }

    /// A new producer, and a decision about the batch under way.
    fn take_up(&mut self) -> Result<Session, Setback> {
        // First of all whether it is still ours: a late fence would cost its owner a takeover.
        self.keeper.stand(self.tenure)?;
        let session = self.open()?;
        self.shared.prepare_register(session.client()).map_err(Setback::Later)?;
        // Asked for once more, because a claim may have been under way before the fence stood.
        let stand = self.keeper.stand(self.tenure)?;
        let patience = self.shared.settings.timeout * 2;
        let sender = self.sender(&session)?;
        let moved = stand.sender.as_ref().is_some_and(|before| *before != sender);
        if moved && stand.under_way {
            return Err(Setback::Later(format!(
                "its batch under way was sent as {}, and we are {sender}: start a worker with the former transactional_id_prefix and brokers, which can find out what became of it",
                stand.sender.as_deref().unwrap_or_default()
            )));
        }
        // Places in another cluster, or of records with another mark, say nothing.
        let known = if moved { Places::new() } else { stand.places.clone() };
        let reader = Reader::new(&self.shared, self.tenure.shard, patience);
        let evidence = reader.gather(&Stand { places: known, ..stand.clone() }, sender);
        match evidence {
            Ok((evidence, origin)) => {
                self.reconcile(&stand, &evidence)?;
                self.origin = origin;
                self.entered_at = None;
            }
            Err(Blind::Unavailable(words)) => return Err(Setback::Later(words)),
            Err(Blind::Gone(words)) => return Err(self.halt(&words)),
        }
        Ok(session)
    }

    /// As whom, and where, we deliver.
    fn sender(&self, session: &Session) -> Result<String, Setback> {
        let cluster = session.client().fetch_cluster_id(self.shared.settings.question_timeout());
        let cluster =
            cluster.ok_or_else(|| Setback::Later("no broker names its cluster".to_owned()))?;
        Ok(format!("{} in {cluster}", self.shared.scope))
    }

    fn open(&self) -> Result<Session, Setback> {
        let began = Instant::now();
        let opened = Session::open(&self.shared, self.tenure, self.shape(), &self.status);
        match &opened {
            Err(code) if is_fenced(*code) => metrics::shard_fenced(self.shared.rail()),
            Err(_) => self.status.seeks_since(began),
            Ok(_) => {
                self.status.found();
                self.shared.abstention.succeeded();
            }
        }
        opened.map_err(|code| Setback::Later(format!("no transactional producer: {code}")))
    }

    fn take_ups(&self) -> usize {
        self.status.take_ups.load(Ordering::Relaxed)
    }

    fn shape(&self) -> Shape {
        let alone = self.alone_until.is_some_and(|until| until > Instant::now());
        self.shared.shape(alone)
    }

    fn reconcile(&mut self, stand: &Stand, evidence: &Evidence) -> Result<(), Setback> {
        let decided = match self.keeper.reconcile(self.tenure, stand, evidence) {
            Err(Denied::Contradiction(words)) => return Err(self.halt(&words)),
            decided => decided?,
        };
        let (rail, shard) = (self.shared.rail(), self.tenure.shard);
        if let Some(reason) = decided.halted {
            error!(rail, shard, reason, "the shard is halted until an operator decides");
            return Err(Setback::Over);
        }
        self.last_batch = decided.batch;
        self.noted_at = Instant::now();
        self.status.take_ups.fetch_add(1, Ordering::Release);
        let (recovered, requeued) = (decided.recovered, decided.requeued);
        metrics::shard_taken_up(rail, recovered);
        info!(rail, shard, epoch = self.tenure.epoch, recovered, requeued, "the shard is ready");
        Ok(())
    }

    fn halt(&self, words: &str) -> Setback {
        let (rail, shard) = (self.shared.rail(), self.tenure.shard);
        if let Err(Denied::Away(away)) = self.keeper.halt(self.tenure, words) {
            return Setback::Later(away);
        }
        error!(rail, shard, reason = words, "the shard is halted until an operator decides");
        Setback::Over
    }

    /// Carries batches until there is a doubt, or the shard is over.
    fn carry(&mut self, session: &Session) -> Next {
        loop {
            if self.is_over() {
                return Next::End;
            }
            let next = match self.commands.recv_timeout(IDLE_TICK) {
                // Claimed before it was found out what became of every batch: its rows may not be ours any more.
                Ok(Command::Carry { lanes, asked_at, .. }) if asked_at != self.take_ups() => {
                    lanes.iter().for_each(|lane| lane.leave_undecided(None));
                    Some(Next::TakeUp)
                }
                Ok(Command::Carry { lanes, noted, .. }) => {
                    self.carry_batch(session, &lanes, &noted)
                }
                Ok(Command::Recover) => Some(Next::TakeUp),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    self.keep_up();
                    None
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => Some(Next::End),
            };
            if let Some(next) = next {
                return next;
            }
            if session.shape != self.shape() {
                return Next::TakeUp;
            }
            self.status.ready.store(true, Ordering::Release);
        }
    }

    /// While a shard stands still its topics go on: what the database remembers of them would grow old until
    /// they have forgotten it, or until nobody could read from there on in time.
    fn keep_up(&mut self) {
        if self.noted_at.elapsed() >= hurried(KEEP_UP) {
            self.note_ends();
        }
    }

    fn note_ends(&mut self) {
        self.noted_at = Instant::now();
        let places = self.shared.reach.places();
        if let Err(denied) = self.keeper.keep_up(self.tenure, self.last_batch, &places) {
            debug!(rail = self.shared.rail(), shard = self.tenure.shard, %denied, "not noted");
        }
    }

    fn carry_batch(
        &mut self,
        session: &Session,
        lanes: &[Arc<Lane>],
        noted: &BTreeSet<String>,
    ) -> Option<Next> {
        let batch = lanes.first().and_then(|lane| lane.batch())?;
        self.last_batch = batch.number;
        self.noted_at = Instant::now();
        let plan = plan(&self.shared, session.client(), &self.verdicts, batch, lanes);
        let rows = || lanes.iter().flat_map(|lane| lane.rows());
        if plan.parcels.is_empty() {
            self.verdicts.forget(rows());
            return None;
        }
        if session.shape != self.shape() {
            // A topic takes smaller batches than this producer makes.
            lanes.iter().for_each(|lane| lane.give_back_the_rest());
            return Some(Next::TakeUp);
        }
        let topics = plan.topics();
        if let Err(words) = self.note(&topics, noted) {
            warn!(rail = self.shared.rail(), shard = self.tenure.shard, "nothing is sent: {words}");
            lanes.iter().for_each(|lane| lane.give_back_the_rest());
            return Some(Next::TakeUp);
        }
        self.begin_in(&topics);
        let is_known = self.entered_at.is_some_and(|at| at.elapsed() < hurried(ENTER_EVERY));
        let entered = !(is_known && plan.speaks_for_itself());
        match session.transact(&plan, entered.then_some(&self.origin)) {
            Ok(()) => {
                if entered {
                    self.entered_at = Some(Instant::now());
                }
                self.verdicts.forget(rows());
                None
            }
            Err(doubt) => {
                let failure = self.weigh(&doubt, session, &plan);
                warn!(
                    rail = self.shared.rail(),
                    shard = self.tenure.shard,
                    batch = batch.number,
                    ?doubt,
                    "a transaction did not succeed for certain: finding out what became of it"
                );
                let fate = failure.as_ref();
                lanes.iter().for_each(|lane| lane.leave_undecided(fate));
                metrics::shard_recycled(self.shared.rail());
                if doubt.is_fenced() {
                    metrics::shard_fenced(self.shared.rail());
                }
                Some(Next::TakeUp)
            }
        }
    }

    /// Remembers what a doubt says about a row; returns why the destination is unavailable, if it is.
    fn weigh(
        &mut self,
        doubt: &Doubt,
        session: &Session,
        plan: &Plan,
    ) -> Option<crate::delivery::Failure> {
        let (code, place) = match doubt {
            _ if doubt.is_fenced() => return None,
            Doubt::Record { place, code } => (*code, Some(*place)),
            Doubt::Producer(code) => (*code, None),
            Doubt::Silence => {
                return Some(classify::failure(Code::MessageTimedOut));
            }
        };
        let failure = classify::failure(code);
        match (self.shared.settings.classes.class(code), place) {
            (Class::Unavailable, _) => return Some(failure),
            (Class::Terminal, Some(place)) if session.shape.alone => {
                self.verdicts.remember(plan.row(place), Outcome::Refused(failure));
            }
            // A broker refuses a batch of records: alone, it shows which of them it means.
            (Class::Terminal, Some(_)) => self.alone_until = Some(Instant::now() + ALONE_FOR),
            (Class::Retryable, Some(place)) => {
                self.verdicts.remember(plan.row(place), Outcome::Retry(failure));
            }
            // It takes nothing, and no record tells why: not to be tried again at once.
            (_, None) if code == Code::State => return Some(failure),
            (_, None) => {}
        }
        None
    }

    /// Whatever is sent to a topic for the first time comes where it ends now, or later.
    fn begin_in(&mut self, topics: &BTreeSet<&str>) {
        for topic in topics {
            if self.origin.contains_key(*topic) {
                continue;
            }
            self.entered_at = None;
            if let Some(ends) = self.shared.reach.places().remove(*topic) {
                self.origin.insert((*topic).to_owned(), ends);
            }
        }
    }

    /// No record goes to a topic of which the database does not know from where on to read it.
    fn note(&self, topics: &BTreeSet<&str>, noted: &BTreeSet<String>) -> Result<(), String> {
        let mut places = Places::new();
        for topic in topics.iter().filter(|topic| !noted.contains(**topic)) {
            let bounds = self.shared.bounds(topic).map_err(|code| code.to_string())?;
            let bounds = bounds.ok_or_else(|| format!("there is no topic {topic}"))?;
            let ends = ends_of(&bounds);
            self.shared.reach.learn(topic, &ends);
            places.insert((*topic).to_owned(), ends);
        }
        if places.is_empty() {
            return Ok(());
        }
        self.keeper.note(self.tenure, &places).map_err(|denied| denied.to_string())
    }
}

/// Why a shard could not be taken up.
enum Setback {
    /// It is not ours any more, or halted.
    Over,
    Later(String),
}

impl From<Denied> for Setback {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Lost => Self::Over,
            other => Self::Later(other.to_string()),
        }
    }
}
