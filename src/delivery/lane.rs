//! The claimed rows of one lane, on their way through a rail.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc;
use uuid::Uuid;

use super::breaker::Permit;
use super::{Batch, Failure, Lease, Outcome, Row, Taken, Trace};

/// How much of a lease is kept to write the outcome down.
const TO_WRITE_DOWN: Duration = Duration::from_secs(2);

/// What the relay writes down for a row.
#[derive(Debug)]
pub struct Settled {
    pub outbox_id: Uuid,
    pub lease_token: Uuid,
    pub rail: Arc<str>,
    pub lane: Arc<str>,
    pub latency: Duration,
    /// From the row's enqueue to its outcome.
    pub age: Duration,
    pub settlement: Settlement,
    /// On a rail that delivers in batches.
    pub batch: Option<Batch>,
    /// Where spans are made, and the row's producer stored the trace it belongs to.
    pub trace: Option<Trace>,
    /// Given back when this is written down.
    pub slot: Taken,
}

/// An outcome for the ledger, or a row that is given back.
#[derive(Debug)]
pub enum Settlement {
    Outcome(Outcome),
    /// Certainly not sent; what stands behind it goes back with it.
    Release {
        delay: Duration,
    },
}

/// The rows of one lane in order, and what is known of each.
///
/// A rail reports one outcome for each row, in any order. The lane passes them on as a prefix: row
/// k + 1 only after row k. When a row has to be tried again, nothing behind it may overtake: its
/// outcome is passed on when nothing of the lane is under way any more, and the database gives back
/// the rest in the same transaction. A lane that is dropped with rows unreported counts those as
/// "may have happened".
#[derive(Debug)]
pub struct Lane {
    rows: Vec<Row>,
    rail: Arc<str>,
    key: Arc<str>,
    ordered: bool,
    halts: bool,
    lease: Lease,
    permit: Permit,
    stopping: Arc<AtomicBool>,
    /// Whether spans are made of its rows.
    traced: bool,
    started: Instant,
    progress: Mutex<Progress>,
    settled: mpsc::UnboundedSender<Settled>,
}

#[derive(Debug)]
struct Progress {
    taken: Taken,
    outcomes: Vec<Option<(Outcome, Instant)>>,
    unreported: usize,
    /// The first row that is not passed on yet.
    next: usize,
}

/// What a lane needs to know besides its rows.
#[derive(Debug)]
pub struct LaneTerms {
    pub rail: Arc<str>,
    /// The participant: outcomes with the same key are written in order.
    pub key: Arc<str>,
    /// `ordering = "strict"`
    pub ordered: bool,
    /// `on_failed = "halt"`
    pub halts: bool,
    pub lease: Lease,
    pub permit: Permit,
    /// As many as there are rows.
    pub taken: Taken,
    /// Set when the worker shuts down: what is not sent yet is given back.
    pub stopping: Arc<AtomicBool>,
    /// Not bounded by itself: it never holds more than one entry for a row that is under way.
    pub settled: mpsc::UnboundedSender<Settled>,
}

impl Lane {
    pub fn new(rows: Vec<Row>, terms: LaneTerms) -> Self {
        let progress = Progress {
            taken: terms.taken,
            outcomes: rows.iter().map(|_| None).collect(),
            unreported: rows.len(),
            next: 0,
        };
        Self {
            rows,
            rail: terms.rail,
            key: terms.key,
            ordered: terms.ordered,
            halts: terms.halts,
            lease: terms.lease,
            permit: terms.permit,
            stopping: terms.stopping,
            traced: false,
            started: Instant::now(),
            progress: Mutex::new(progress),
            settled: terms.settled,
        }
    }

    /// The same lane, whose outcomes say which trace they belong to.
    pub fn traced(mut self) -> Self {
        self.traced = true;
        self
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The rows that have no outcome yet, in order.
    pub fn unreported(&self) -> Vec<usize> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        (0..self.rows.len()).filter(|index| progress.outcomes[*index].is_none()).collect()
    }

    /// Whether a row may be sent now by a rail that takes at most `longest` for it.
    pub fn may_send(&self, longest: Duration) -> bool {
        !self.stopping.load(Ordering::Relaxed)
            && self.permit.holds()
            && self.lease.covers(longest + TO_WRITE_DOWN)
    }

    /// Whether the rows behind one with this outcome may be sent.
    pub fn goes_on_after(&self, outcome: &Outcome) -> bool {
        // Whoever finds out what became of a batch reads the beginning of each lane: behind a row that is
        // not in the topic nothing of the batch may be, until the ledger knows why.
        let leaves_a_gap = self.batch().is_some() && !matches!(outcome, Outcome::Delivered { .. });
        !self.ordered || (outcome.lets_the_lane_go_on(self.halts) && !leaves_a_gap)
    }

    /// Says what became of a row that the rail was to send. A second report for the same row is
    /// ignored.
    pub fn report(&self, index: usize, outcome: Outcome) {
        let outcome = match outcome {
            // A probe that gets no answer does not count: the destination was unavailable before it.
            Outcome::Retry(failure) if self.permit.is_probe() && !failure.answered => {
                Outcome::Unavailable { failure, maybe_sent: true }
            }
            outcome => outcome,
        };
        self.keep(index, outcome, true);
    }

    /// Says what became of a row that was never meant to reach the rail, and tells nothing about it.
    pub fn withhold(&self, index: usize, outcome: Outcome) {
        self.keep(index, outcome, false);
    }

    /// The first word about a row counts; `tells` says whether it tells something of the destination.
    fn keep(&self, index: usize, outcome: Outcome, tells: bool) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.outcomes[index].is_some() {
            return;
        }
        if tells {
            // Before it is passed on: a row that goes back stays away as long as the breaker says.
            self.permit.record(&outcome, &self.key);
        }
        progress.outcomes[index] = Some((outcome, Instant::now()));
        progress.unreported -= 1;
        self.pass_on(&mut progress, index);
    }

    /// The batch of its rows, on a rail that delivers in batches.
    pub fn batch(&self) -> Option<Batch> {
        self.rows.first().and_then(|row| row.batch)
    }

    /// Nobody can say yet what became of the rows that have no outcome; `failure` if their destination is
    /// unavailable.
    pub fn leave_undecided(&self, failure: Option<&Failure>) {
        for index in self.unreported() {
            self.report(index, Outcome::Undecided(failure.cloned()));
        }
    }

    /// Every row that has no outcome yet was not sent.
    pub fn give_back_the_rest(&self) {
        for index in self.unreported() {
            self.report(index, Outcome::NotSent);
        }
    }

    fn pass_on(&self, progress: &mut Progress, reported: usize) {
        if !self.ordered {
            self.settle(progress, reported);
            return;
        }
        while let Some(Some((outcome, _))) = progress.outcomes.get(progress.next) {
            if !outcome.lets_the_lane_go_on(self.halts) {
                // The database gives back what is behind it, so nothing of that may be under way.
                if progress.unreported == 0 {
                    self.settle(progress, progress.next);
                    progress.next = self.rows.len();
                }
                return;
            }
            self.settle(progress, progress.next);
            progress.next += 1;
        }
    }

    fn settle(&self, progress: &mut Progress, index: usize) {
        let slot = progress.taken.split();
        let Some((outcome, at)) = &progress.outcomes[index] else { return };
        let row = &self.rows[index];
        let settlement = match outcome {
            // The slot is given back here; the row stays in its batch.
            Outcome::Undecided(_) => return,
            Outcome::NotSent => Settlement::Release { delay: self.permit.stays_away() },
            Outcome::NotYet { delay } => {
                Settlement::Release { delay: self.permit.stays_away().max(*delay) }
            }
            Outcome::Unavailable { failure, maybe_sent: false } => {
                Settlement::Release { delay: failure.retry_after.unwrap_or(self.permit.delay()) }
            }
            // It is due when the destination is looked at again, however often it was tried.
            Outcome::Unavailable { failure, maybe_sent: true } if failure.retry_after.is_none() => {
                let mut failure = failure.clone();
                failure.retry_after = Some(self.permit.delay());
                Settlement::Outcome(Outcome::Unavailable { failure, maybe_sent: true })
            }
            other => Settlement::Outcome(other.clone()),
        };
        let latency = at.saturating_duration_since(self.started);
        let ended_at = || SystemTime::now().checked_sub(at.elapsed()).unwrap_or(row.created_at);
        let trace = self.traced.then(|| Trace::of(row, ended_at(), latency)).flatten();
        // Nobody listens only when the process is being torn down: the lease then expires.
        let _ = self.settled.send(Settled {
            outbox_id: row.outbox_id,
            lease_token: row.lease_token,
            rail: Arc::clone(&self.rail),
            lane: Arc::clone(&self.key),
            latency,
            age: row.created_at.elapsed().unwrap_or_default(),
            settlement,
            batch: row.batch,
            trace,
            slot,
        });
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        for index in self.unreported() {
            let lost = Failure::new("OUTCOME_UNKNOWN", "the rail never said what became of it");
            let in_batch = self.rows[index].batch.is_some();
            self.report(
                index,
                if in_batch { Outcome::Undecided(None) } else { Outcome::Retry(lost) },
            );
        }
        self.permit.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::{Breaker, Slots};

    fn lane(ordered: bool, halts: bool) -> (Lane, mpsc::UnboundedReceiver<Settled>) {
        let (settled, receiver) = mpsc::unbounded_channel();
        let breaker = Arc::new(Breaker::new("test".into()));
        let terms = LaneTerms {
            rail: "rail".into(),
            key: "lane".into(),
            ordered,
            halts,
            lease: Lease::new(Instant::now(), Duration::from_secs(60)),
            permit: breaker.permit().unwrap(),
            taken: Arc::new(Slots::default()).take(3),
            stopping: Arc::new(AtomicBool::new(false)),
            settled,
        };
        (Lane::new((1..=3).map(Row::example).collect(), terms), receiver)
    }

    fn delivered() -> Outcome {
        Outcome::Delivered { reference: None, rail_code: None }
    }

    fn retry() -> Outcome {
        Outcome::Retry(Failure::new("X", "x"))
    }

    fn told(receiver: &mut mpsc::UnboundedReceiver<Settled>) -> Vec<(u128, bool)> {
        std::iter::from_fn(|| receiver.try_recv().ok())
            .map(|settled| {
                let kept = matches!(settled.settlement, Settlement::Outcome(_));
                (settled.outbox_id.as_u128(), kept)
            })
            .collect()
    }

    #[test]
    fn outcomes_are_passed_on_as_a_prefix() {
        let (lane, mut receiver) = lane(true, false);
        lane.report(1, delivered());
        assert_eq!(told(&mut receiver), []);
        lane.report(0, delivered());
        assert_eq!(told(&mut receiver), [(1, true), (2, true)]);
        lane.report(2, delivered());
        assert_eq!(told(&mut receiver), [(3, true)]);
    }

    #[test]
    fn a_retry_waits_until_nothing_behind_it_is_under_way_and_takes_the_rest_back() {
        let (lane, mut receiver) = lane(true, false);
        lane.report(0, delivered());
        lane.report(1, retry());
        assert_eq!(told(&mut receiver), [(1, true)]);
        lane.report(2, delivered());
        assert_eq!(told(&mut receiver), [(2, true)], "the database gives back row 3");
    }

    #[test]
    fn a_refused_row_lets_the_lane_go_on_unless_it_halts() {
        let (skipping, mut receiver) = lane(true, false);
        skipping.report(0, Outcome::Refused(Failure::new("X", "x")));
        skipping.report(1, delivered());
        assert_eq!(told(&mut receiver), [(1, true), (2, true)]);
        let (halting, mut receiver) = lane(true, true);
        halting.report(0, Outcome::Refused(Failure::new("X", "x")));
        assert_eq!(told(&mut receiver), []);
        halting.give_back_the_rest();
        assert_eq!(told(&mut receiver), [(1, true)]);
    }

    #[test]
    fn a_refused_row_of_a_batch_fails_and_nothing_behind_it_is_sent() {
        let refused = Outcome::Refused(Failure::new("X", "x"));
        let (mut ordered, mut receiver) = lane(true, false);
        assert!(ordered.goes_on_after(&refused), "no batch, no gap");
        let batch = Batch { shard: 0, number: 1 };
        ordered.rows.iter_mut().for_each(|row| row.batch = Some(batch));
        assert!(ordered.goes_on_after(&delivered()) && !ordered.goes_on_after(&refused));
        ordered.withhold(1, refused.clone());
        ordered.withhold(2, Outcome::NotSent);
        assert_eq!(told(&mut receiver), []);
        ordered.report(0, delivered());
        assert_eq!(told(&mut receiver), [(1, true), (2, true), (3, false)]);
        let (mut unordered, _receiver) = lane(false, false);
        unordered.rows.iter_mut().for_each(|row| row.batch = Some(batch));
        assert!(unordered.goes_on_after(&refused));
    }

    #[test]
    fn without_order_each_row_is_on_its_own() {
        let (lane, mut receiver) = lane(false, false);
        lane.report(1, retry());
        lane.report(2, delivered());
        assert_eq!(told(&mut receiver), [(2, true), (3, true)]);
    }

    #[test]
    fn what_was_certainly_not_sent_is_given_back() {
        let (lane, mut receiver) = lane(true, false);
        lane.report(0, delivered());
        lane.give_back_the_rest();
        assert_eq!(told(&mut receiver), [(1, true), (2, false)]);
    }

    #[test]
    fn what_there_is_no_point_in_trying_at_once_stays_away_and_what_is_behind_it_waits() {
        let (lane, mut receiver) = lane(true, false);
        let delay = Duration::from_secs(7);
        lane.report(0, Outcome::NotYet { delay });
        lane.give_back_the_rest();
        let Settlement::Release { delay: stays_away } = receiver.try_recv().unwrap().settlement
        else {
            panic!("nothing was sent");
        };
        assert_eq!(stays_away, delay);
        assert_eq!(told(&mut receiver), [], "the database gives back what is behind it");
    }

    #[test]
    fn only_a_traced_lane_says_which_trace_a_row_belongs_to() {
        for (traced, expected) in [(false, None), (true, Some("00-a-b-01"))] {
            let (mut lane, mut receiver) = lane(true, false);
            lane.rows[0].headers.push(("traceparent".to_owned(), "00-a-b-01".to_owned()));
            let lane = if traced { lane.traced() } else { lane };
            lane.report(0, delivered());
            lane.report(1, delivered());
            let mut trace = || receiver.try_recv().unwrap().trace.map(|trace| trace.traceparent);
            assert_eq!(trace().as_deref(), expected);
            assert_eq!(trace(), None, "its producer stored none");
        }
    }

    #[test]
    fn a_lane_that_is_dropped_may_have_been_sent() {
        let (lane, mut receiver) = lane(true, false);
        lane.report(0, delivered());
        drop(lane);
        assert_eq!(told(&mut receiver), [(1, true), (2, true)]);
    }
}
