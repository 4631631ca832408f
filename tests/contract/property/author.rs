//! Writes the steps of a case, at random but the same for the same seed.

use super::rng::Rng;
use super::steps::{
    KeyChoice, NewRow, Outcome, PARTICIPANTS, Picks, Place, SESSIONS, Step, WORKERS,
};

/// What a case is mostly about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Theme {
    Mixed,
    Crashes,
    Failures,
    OpenTransactions,
    Retries,
}

struct Author {
    rng: Rng,
    theme: Theme,
    /// Participant and rail of every other row, so that one lane is long.
    favourite: (usize, usize),
    steps: Vec<Step>,
}

/// The steps of a case. The same seed gives the same steps.
pub(super) fn write(seed: u64, archives: bool) -> Vec<Step> {
    let mut rng = Rng::new(seed);
    let themes =
        [Theme::Mixed, Theme::Mixed, Theme::Crashes, Theme::Failures, Theme::OpenTransactions];
    let theme = if rng.chance(2) { Theme::Retries } else { rng.pick(&themes) };
    let length = 25 + rng.below(16);
    let favourite = (rng.below(PARTICIPANTS), rng.below(3));
    let mut author = Author { rng, theme, favourite, steps: Vec::new() };
    author.enqueue();
    author.enqueue();
    while author.steps.len() < length {
        author.next();
    }
    if archives {
        author.archive();
    }
    author.steps
}

impl Author {
    fn next(&mut self) {
        let weights: [usize; 13] = match self.theme {
            // enqueue claim complete release renew repair advance stop failure open end crash retry
            Theme::Mixed => [16, 18, 22, 5, 3, 4, 8, 7, 9, 6, 6, 1, 0],
            Theme::Crashes => [14, 16, 12, 3, 4, 8, 12, 4, 2, 4, 5, 12, 0],
            Theme::Failures => [16, 18, 26, 2, 1, 2, 5, 8, 22, 4, 4, 0, 0],
            Theme::OpenTransactions => [16, 16, 16, 3, 2, 5, 6, 4, 4, 18, 9, 1, 0],
            Theme::Retries => [4, 2, 6, 0, 0, 0, 2, 1, 1, 1, 1, 0, 8],
        };
        let mut at = self.rng.below(weights.iter().sum());
        let kind = weights.iter().position(|weight| {
            let here = at < *weight;
            at = at.saturating_sub(*weight);
            here
        });
        match kind.unwrap_or(0) {
            0 => self.enqueue(),
            1 => self.work(),
            2 => self.complete(),
            3 => self.release(),
            4 => self.renew(),
            5 => self.repair(),
            6 => self.advance(),
            7 => self.stop(),
            8 => self.failure(),
            9 => self.open(),
            10 => self.end(),
            11 => self.crash(),
            _ => self.exhaust(),
        }
    }

    fn session(&mut self) -> usize {
        self.rng.below(SESSIONS)
    }

    fn enqueue(&mut self) {
        let batch = self.rng.chance(40);
        let count = if batch { 1 + self.rng.below(7) } else { 1 };
        let rows = (0..count).map(|_| self.new_row()).collect();
        let (session, report_errors) = (self.session(), self.rng.chance(50));
        self.steps.push(Step::Enqueue { session, rows, batch, report_errors });
    }

    fn new_row(&mut self) -> NewRow {
        let key = match self.rng.below(10) {
            0 => KeyChoice::Used(self.rng.below(20)),
            1 if self.rng.chance(50) => KeyChoice::Conflicting(self.rng.below(20)),
            _ => KeyChoice::New,
        };
        let (participant, rail) = match self.rng.chance(50) {
            true => self.favourite,
            false => (self.rng.below(PARTICIPANTS), self.rng.below(3)),
        };
        NewRow {
            participant,
            rail,
            key,
            delay_seconds: if self.rng.chance(15) { 1 + self.rng.below(40) as i32 } else { 0 },
        }
    }

    /// A claim and, mostly, what becomes of it.
    fn work(&mut self) {
        let worker = self.claim();
        if self.rng.chance(60) {
            self.complete();
            if let Some(Step::Complete { picks, .. }) = self.steps.last_mut() {
                picks.worker = worker;
            }
        }
    }

    fn claim(&mut self) -> usize {
        let worker = self.rng.below(WORKERS);
        let step = Step::Claim {
            session: self.session(),
            worker,
            size: self.rng.pick(&[1, 2, 3, 5, 20, 100]),
            lane_rows: if self.rng.chance(20) { Some(self.rng.pick(&[1, 2])) } else { None },
            rail: if self.rng.chance(25) { Some(self.rng.below(4)) } else { None },
            lease_seconds: self.rng.pick(&[5, 30, 60]),
        };
        self.steps.push(step);
        worker
    }

    fn picks(&mut self) -> Picks {
        Picks {
            worker: self.rng.below(WORKERS),
            stale: self.rng.chance(12),
            from: if self.rng.chance(40) { self.rng.below(6) } else { 0 },
            count: 1 + self.rng.below(6),
            reversed: self.rng.chance(15),
            wrong_token: if self.rng.chance(12) { Some(self.rng.below(3)) } else { None },
            impostor: self.rng.chance(4),
        }
    }

    fn outcome(&mut self) -> Outcome {
        let failures = if self.theme == Theme::Failures { 45 } else { 25 };
        let state = match self.rng.below(100) {
            at if at < failures => "FAILED",
            at if at < failures + 18 => "RETRYABLE",
            at if at < failures + 20 => "ZOMBIE_REQUEUE",
            _ => "DISPATCHED",
        };
        let delay_seconds =
            if self.rng.chance(60) { Some(self.rng.pick(&[0, 0, 2, 20])) } else { None };
        let counted = self.rng.pick(&[None, Some(true), Some(false)]);
        Outcome { state, delay_seconds, counted }
    }

    fn complete(&mut self) {
        let single = self.rng.chance(30);
        let mut picks = self.picks();
        if single {
            picks.count = 1;
        }
        let outcomes = (0..picks.count).map(|_| self.outcome()).collect();
        let session = self.session();
        self.steps.push(Step::Complete { session, picks, outcomes, single });
    }

    fn release(&mut self) {
        let step = Step::Release {
            session: self.session(),
            picks: self.picks(),
            delay_seconds: self.rng.pick(&[0, 0, 3, 30]),
        };
        self.steps.push(step);
    }

    fn renew(&mut self) {
        let (session, picks) = (self.session(), self.picks());
        let lease_seconds = self.rng.pick(&[1, 10, 90]);
        self.steps.push(Step::Renew { session, picks, lease_seconds });
    }

    fn repair(&mut self) {
        let (session, worker) = (self.session(), self.rng.below(WORKERS));
        let lanes = self.rng.pick(&[1, 2, 500]);
        self.steps.push(Step::Repair { session, worker, lanes });
    }

    fn advance(&mut self) {
        let seconds = self.rng.pick(&[0, 1, 1, 2, 3, 6, 31, 61, 1000]);
        self.steps.push(Step::Advance { seconds });
    }

    fn stop(&mut self) {
        let session = self.session();
        let place = Place {
            nth: self.rng.below(8),
            participant: self.rng.below(PARTICIPANTS),
            rail: self.rng.below(4),
        };
        self.steps.push(match self.rng.below(10) {
            0..=2 => Step::Pause { session, place },
            3..=5 => Step::Resume { session, place },
            _ => Step::Skip { session, place },
        });
    }

    fn failure(&mut self) {
        let (session, failure) = (self.session(), self.rng.below(12));
        self.steps.push(if self.rng.chance(65) {
            Step::Replay { session, failure }
        } else {
            Step::Dismiss { session, failure }
        });
    }

    /// Opens a transaction and gives it something to hold on to.
    fn open(&mut self) {
        let session = self.session();
        self.steps.push(Step::Begin { session });
        match self.rng.below(8) {
            0..=2 => self.enqueue(),
            3 | 4 => self.complete(),
            5 => drop(self.claim()),
            6 => self.stop(),
            _ => self.repair(),
        }
        if let Some(here) = self.steps.last_mut().and_then(Step::session) {
            *here = session;
        }
    }

    fn end(&mut self) {
        let (session, commit) = (self.session(), self.rng.chance(65));
        self.steps.push(Step::End { session, commit });
    }

    /// A worker that dies with its rows, again and again.
    fn crash(&mut self) {
        for _ in 0..self.rng.pick(&[1, 1, 2, 5]) {
            self.claim();
            self.steps.push(Step::Advance { seconds: 61 });
            if self.rng.chance(60) {
                self.repair();
            }
            self.steps.push(Step::Advance { seconds: 1 });
        }
    }

    /// A row that is tried until it may not be tried any more.
    fn exhaust(&mut self) {
        let session = self.session();
        for _ in 0..20 {
            self.steps.push(Step::Claim {
                session,
                worker: 0,
                size: 100,
                lane_rows: None,
                rail: None,
                lease_seconds: 60,
            });
            let picks = Picks {
                worker: 0,
                stale: false,
                from: 0,
                count: 6,
                reversed: false,
                wrong_token: None,
                impostor: false,
            };
            let counted = if self.rng.chance(10) { Some(false) } else { None };
            let outcome = Outcome { state: "RETRYABLE", delay_seconds: Some(0), counted };
            self.steps.push(Step::Complete {
                session,
                picks,
                outcomes: vec![outcome; 6],
                single: false,
            });
        }
    }

    fn archive(&mut self) {
        self.steps.push(Step::Age);
        for _ in 0..12 {
            let session = self.session();
            self.steps.push(Step::Upkeep { session });
            if self.rng.chance(40) {
                self.next();
            }
        }
        for _ in 0..10 {
            self.next();
        }
    }
}
