//! Whether a destination is worth trying.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{Failure, Outcome};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// However long a destination asks us to wait, it is looked at again after this.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(300);
/// A probe that says nothing for this long does not hold up the next one.
const PROBE_PATIENCE: Duration = Duration::from_secs(60);

/// What nobody has sent anything to for so long, although it could have been tried again, may have been back for as long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// After so many lanes in a row without an answer, nobody is there to answer. The silences of fewer may be
/// the fault of their rows, and count as their attempts.
const SILENCES: usize = 5;

/// What the breaker of a destination does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    Open,
    /// One row is on its way to find out.
    Probing,
}

/// One destination: a rail's topic or URL. Opens when the destination is unavailable, or takes rows and
/// never answers; lets one probe through after a pause (1 s, doubling to 30 s), and closes when
/// something gets an answer.
#[derive(Debug)]
pub struct Breaker {
    destination: Arc<str>,
    inner: Mutex<Inner>,
    /// The error code that the log says it is unavailable for.
    told: Mutex<String>,
}

#[derive(Debug, Clone)]
enum Inner {
    Closed {
        /// The lanes that got no answer since somebody last had one; fewer than [`SILENCES`].
        silent: Vec<Arc<str>>,
    },
    Open {
        until: Instant,
        pause: Duration,
    },
    Probing {
        since: Instant,
        pause: Duration,
    },
}

const ANSWERS: Inner = Inner::Closed { silent: Vec::new() };

/// The right to send one lane to a destination, and the duty to say what came of it.
#[derive(Debug, Clone)]
pub struct Permit {
    breaker: Arc<Breaker>,
    probe: bool,
}

impl Breaker {
    pub fn new(destination: Arc<str>) -> Self {
        Self { destination, inner: Mutex::new(ANSWERS), told: Mutex::default() }
    }

    pub fn state(&self) -> BreakerState {
        match &*self.lock() {
            Inner::Closed { .. } => BreakerState::Closed,
            Inner::Open { .. } => BreakerState::Open,
            Inner::Probing { .. } => BreakerState::Probing,
        }
    }

    /// Whether its destination is known to be unavailable. For one that no row has come for since long after its pause
    /// nobody knows; the next row finds out.
    pub fn is_down(&self) -> bool {
        match *self.lock() {
            Inner::Closed { .. } => false,
            Inner::Open { until, .. } => until.elapsed() < FORGOTTEN_AFTER,
            Inner::Probing { .. } => true,
        }
    }

    /// A permit, or how long to wait before asking again.
    pub fn permit(self: &Arc<Self>) -> Result<Permit, Duration> {
        let now = Instant::now();
        let mut inner = self.lock();
        let probe = match *inner {
            Inner::Closed { .. } => false,
            Inner::Open { until, .. } if until > now => return Err(until - now),
            Inner::Probing { since, .. } if now - since < PROBE_PATIENCE => {
                return Err(FIRST_PAUSE);
            }
            Inner::Open { pause, .. } | Inner::Probing { pause, .. } => {
                *inner = Inner::Probing { since: now, pause };
                true
            }
        };
        Ok(Permit { breaker: Arc::clone(self), probe })
    }

    /// How long there is no point in sending; nothing when it is closed or a probe is due.
    pub fn closed_for(&self) -> Duration {
        match *self.lock() {
            Inner::Closed { .. } => Duration::ZERO,
            Inner::Open { until, .. } => until.saturating_duration_since(Instant::now()),
            Inner::Probing { since, .. } if since.elapsed() >= PROBE_PATIENCE => Duration::ZERO,
            Inner::Probing { .. } => FIRST_PAUSE,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) {
        let before = std::mem::replace(&mut *self.lock(), ANSWERS);
        if !matches!(before, Inner::Closed { .. }) {
            tracing::info!(destination = %self.destination, "available again");
        }
    }

    fn unavailable(&self, failure: &Failure, probe: bool) {
        let mut inner = self.lock();
        let pause = match *inner {
            Inner::Closed { .. } => FIRST_PAUSE,
            Inner::Probing { pause, .. } if probe => (pause * 2).min(LONGEST_PAUSE),
            // The others of a batch that failed together say nothing new.
            Inner::Open { .. } | Inner::Probing { .. } => return,
        };
        let opens = matches!(*inner, Inner::Closed { .. });
        self.tell(failure, opens);
        let wait = failure.retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER).max(pause);
        *inner = Inner::Open { until: Instant::now() + wait, pause };
    }

    /// Logs why it opens, and again when a probe finds another reason: the first may have been that nobody
    /// knew better yet.
    fn tell(&self, failure: &Failure, opens: bool) {
        let is_news = self.is_news(failure);
        let message = match (opens, is_news) {
            (true, _) => "unavailable: nothing is sent there until a probe gets through",
            (false, true) => "still unavailable, but for another reason",
            (false, false) => return,
        };
        tracing::warn!(destination = %self.destination, error_code = failure.error_code, reason = failure.message, "{message}");
    }

    /// Whether this is another reason than the one before.
    fn is_news(&self, failure: &Failure) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *told, failure.error_code.clone());
        before != failure.error_code
    }

    fn silent(&self, failure: &Failure, lane: &Arc<str>) {
        if let Inner::Closed { silent } = &mut *self.lock() {
            if !silent.contains(lane) {
                silent.push(Arc::clone(lane));
            }
            if silent.len() < SILENCES {
                return;
            }
        }
        self.unavailable(failure, false);
    }

    /// Somebody is there, although what was sent before may have found nobody.
    fn spoke(&self) {
        let mut inner = self.lock();
        if matches!(*inner, Inner::Closed { .. }) {
            *inner = ANSWERS;
        }
    }

    /// A probe that found out nothing: wait as long as before.
    fn inconclusive(&self) {
        let mut inner = self.lock();
        if let Inner::Probing { pause, .. } = *inner {
            *inner = Inner::Open { until: Instant::now() + pause, pause };
        }
    }
}

impl Permit {
    /// Whether it still holds: what has found out meanwhile that the destination is down speaks for all.
    pub(super) fn holds(&self) -> bool {
        self.probe || self.breaker.state() == BreakerState::Closed
    }

    /// Whether this is the one row that finds out: nothing else of the lane may go with it.
    pub fn is_probe(&self) -> bool {
        self.probe
    }

    /// What became of a row of this lane.
    pub(super) fn record(&self, outcome: &Outcome, lane: &Arc<str>) {
        match outcome {
            Outcome::Delivered { .. } => self.breaker.answered(),
            Outcome::Unavailable { failure, .. } => self.breaker.unavailable(failure, self.probe),
            Outcome::Refused(failure) | Outcome::Retry(failure) if failure.answered => {
                if self.probe { self.breaker.answered() } else { self.breaker.spoke() }
            }
            Outcome::Undecided(Some(failure)) => self.breaker.unavailable(failure, self.probe),
            Outcome::Refused(_)
            | Outcome::Retry(_)
            | Outcome::NotSent
            | Outcome::NotYet { .. }
            | Outcome::Undecided(None)
                if self.probe =>
            {
                self.breaker.inconclusive();
            }
            Outcome::Retry(failure) => self.breaker.silent(failure, lane),
            // The rail itself refused it, or gave it back: nobody was asked.
            Outcome::Refused(_)
            | Outcome::NotSent
            | Outcome::NotYet { .. }
            | Outcome::Undecided(None) => {}
        }
    }

    /// A probe whose row was withheld found out nothing.
    pub(super) fn end(&self) {
        if self.probe {
            self.breaker.inconclusive();
        }
    }

    /// How long a row stays away that the lane stopped before.
    pub(super) fn stays_away(&self) -> Duration {
        self.breaker.closed_for()
    }

    /// How long a row that found nobody stays away.
    pub(super) fn delay(&self) -> Duration {
        self.breaker.closed_for().max(FIRST_PAUSE)
    }
}

#[cfg(test)]
impl Breaker {
    /// Open, as if nobody had asked for a permit for so long after its pause.
    pub(crate) fn open_and_left_alone_for(&self, time: Duration) {
        let until = Instant::now().checked_sub(time).unwrap();
        *self.lock() = Inner::Open { until, pause: FIRST_PAUSE };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Arc<Breaker> {
        Arc::new(Breaker::new("payments".into()))
    }

    fn lane(name: &str) -> Arc<str> {
        name.into()
    }

    fn down() -> Outcome {
        Outcome::Unavailable { failure: Failure::new("DOWN", "down"), maybe_sent: false }
    }

    fn delivered() -> Outcome {
        Outcome::Delivered { reference: None, rail_code: None }
    }

    /// What the destination itself said.
    fn answer(error_code: &str) -> Failure {
        Failure { answered: true, ..Failure::new(error_code, "no") }
    }

    /// As if its pause were over.
    fn let_the_pause_pass(breaker: &Breaker) {
        let mut inner = breaker.lock();
        if let Inner::Open { pause, .. } = *inner {
            *inner = Inner::Open { until: Instant::now(), pause };
        }
    }

    #[test]
    fn it_opens_at_once_and_lets_one_probe_through_after_a_pause() {
        let breaker = breaker();
        breaker.permit().unwrap().record(&down(), &lane("a"));
        assert_eq!(breaker.state(), BreakerState::Open);
        assert!(breaker.permit().is_err());
        let_the_pause_pass(&breaker);
        let probe = breaker.permit().unwrap();
        assert!(probe.is_probe());
        assert!(breaker.permit().is_err(), "one probe at a time");
        probe.record(&delivered(), &lane("a"));
        assert_eq!(breaker.state(), BreakerState::Closed);
        assert!(!breaker.permit().unwrap().is_probe());
    }

    #[test]
    fn nobody_knows_that_it_is_down_when_no_row_has_come_for_long_and_the_next_still_finds_out() {
        let breaker = breaker();
        breaker.permit().unwrap().record(&down(), &lane("a"));
        assert!(breaker.is_down());
        breaker.open_and_left_alone_for(Duration::from_secs(50));
        assert!(breaker.is_down());
        breaker.open_and_left_alone_for(Duration::from_secs(70));
        assert!(!breaker.is_down());
        let probe = breaker.permit().unwrap();
        assert!(probe.is_probe() && breaker.is_down());
        probe.record(&down(), &lane("a"));
        assert!(breaker.is_down() && breaker.permit().is_err());
    }

    #[test]
    fn a_failed_probe_doubles_the_pause_up_to_its_bound() {
        let breaker = breaker();
        breaker.permit().unwrap().record(&down(), &lane("a"));
        for expected in [2, 4, 8, 16, 30, 30] {
            let_the_pause_pass(&breaker);
            breaker.permit().unwrap().record(&down(), &lane("a"));
            let pause = breaker.closed_for();
            assert!(pause <= Duration::from_secs(expected), "{pause:?}");
            assert!(pause > Duration::from_secs(expected) - FIRST_PAUSE, "{pause:?}");
        }
    }

    #[test]
    fn another_reason_is_news_and_the_same_again_is_none() {
        let breaker = breaker();
        let [silence, refusal] =
            ["KAFKA_TRANSPORT", "KAFKA_SSL"].map(|code| Failure::new(code, ""));
        let news = [&silence, &silence, &refusal, &refusal, &silence]
            .map(|failure| breaker.is_news(failure));
        assert_eq!(news, [true, false, true, false, true]);
    }

    #[test]
    fn a_batch_that_fails_together_opens_it_once() {
        let breaker = breaker();
        let permits: Vec<Permit> = (0..10).map(|_| breaker.permit().unwrap()).collect();
        for permit in &permits {
            permit.record(&down(), &lane("a"));
        }
        assert!(breaker.closed_for() <= FIRST_PAUSE);
    }

    #[test]
    fn what_the_destination_asks_for_is_obeyed_within_bounds() {
        let breaker = breaker();
        let mut failure = Failure::new("HTTP_503", "busy");
        failure.retry_after = Some(Duration::from_secs(86_400));
        breaker
            .permit()
            .unwrap()
            .record(&Outcome::Unavailable { failure, maybe_sent: true }, &lane("a"));
        assert!(breaker.closed_for() <= LONGEST_RETRY_AFTER);
        assert!(breaker.closed_for() > LONGEST_RETRY_AFTER - FIRST_PAUSE);
    }

    #[test]
    fn a_probe_that_finds_out_nothing_does_not_close_it() {
        let breaker = breaker();
        breaker.permit().unwrap().record(&down(), &lane("a"));
        let_the_pause_pass(&breaker);
        breaker.permit().unwrap().record(&Outcome::NotSent, &lane("a"));
        assert_eq!(breaker.state(), BreakerState::Open);
    }

    #[test]
    fn a_destination_that_never_answers_opens_it_and_an_answer_starts_the_count_again() {
        let breaker = breaker();
        let silence = Outcome::Retry(Failure::new("HTTP_TIMEOUT", "no answer"));
        let busy = Outcome::Retry(answer("HTTP_409"));
        let send = |outcome: &Outcome, name: &str| {
            breaker.permit().unwrap().record(outcome, &lane(name));
        };
        for answer in [&delivered(), &busy, &Outcome::Refused(answer("HTTP_422"))] {
            ["a", "b", "c", "d"].into_iter().for_each(|name| send(&silence, name));
            send(answer, "a");
            assert_eq!(breaker.state(), BreakerState::Closed);
        }
        ["a", "b", "c", "d", "e"].into_iter().for_each(|name| send(&silence, name));
        assert_eq!(breaker.state(), BreakerState::Open);
        let_the_pause_pass(&breaker);
        send(&busy, "a");
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_few_lanes_that_get_no_answer_do_not_speak_for_all() {
        let breaker = breaker();
        let silence = Outcome::Retry(Failure::new("HTTP_TIMEOUT", "no answer"));
        for name in ["a", "b", "c", "d"].into_iter().cycle().take(40) {
            breaker.permit().unwrap().record(&silence, &lane(name));
        }
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_probe_that_is_refused_before_it_is_sent_says_nothing_of_the_destination() {
        let breaker = breaker();
        breaker.permit().unwrap().record(&down(), &lane("a"));
        let_the_pause_pass(&breaker);
        let local = Failure::new("IDEMPOTENCY_WINDOW_PASSED", "too late");
        breaker.permit().unwrap().record(&Outcome::Refused(local), &lane("a"));
        assert_eq!(breaker.state(), BreakerState::Open);
        let_the_pause_pass(&breaker);
        breaker.permit().unwrap().record(&Outcome::Refused(answer("HTTP_422")), &lane("a"));
        assert_eq!(breaker.state(), BreakerState::Closed);
    }

    #[test]
    fn a_permit_holds_until_the_breaker_opens_and_that_of_a_probe_longer() {
        let breaker = breaker();
        let early = breaker.permit().unwrap();
        assert!(early.holds());
        breaker.permit().unwrap().record(&down(), &lane("a"));
        assert!(!early.holds());
        let_the_pause_pass(&breaker);
        assert!(breaker.permit().unwrap().holds());
        // An answer to what was sent before does not close what has opened since.
        early.record(&Outcome::Retry(answer("HTTP_409")), &lane("a"));
        assert_eq!(breaker.state(), BreakerState::Probing);
    }
}
