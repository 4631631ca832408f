//! Many cases, several at a time, and what to do with one that fails.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::task::JoinSet;

use super::author;
use super::bench::Bench;
use super::case::{Case, Tally};
use super::steps::Step;

/// Databases that run cases at the same time.
const BENCHES: usize = 4;

/// A shorter list of steps is looked for this often.
const SHRINKS: usize = 150;

/// What to take out of each database before the cases run: function, guard, instead.
pub(super) type Sabotage = Option<(&'static str, &'static str, &'static str)>;

pub(super) struct Plan {
    pub(super) first_seed: u64,
    pub(super) cases: u64,
    pub(super) archives: bool,
    pub(super) shrink: bool,
    pub(super) sabotage: Sabotage,
}

/// A case that went wrong.
pub(super) struct Found {
    pub(super) seed: u64,
    pub(super) steps: Vec<Step>,
    /// After which step, and what.
    pub(super) violation: (usize, String),
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {} fails (PROPERTY_SEED={} runs it alone):", self.seed, self.seed)?;
        for (at, step) in self.steps.iter().enumerate() {
            writeln!(f, "  {at:>3} {step:?}")?;
        }
        write!(f, "after step {}:\n  {}", self.violation.0, self.violation.1)
    }
}

/// What happened in all cases, and the one that failed.
pub(super) struct Report {
    pub(super) found: Option<Found>,
    pub(super) tally: Tally,
}

/// What the benches of a run share.
struct Run {
    plan: Plan,
    next: AtomicU64,
    tally: Mutex<Tally>,
}

/// Runs the cases of a plan until one fails.
pub(super) async fn run(plan: Plan) -> Report {
    let run = Arc::new(Run { plan, next: AtomicU64::new(0), tally: Mutex::default() });
    let mut benches = JoinSet::new();
    for _ in 0..BENCHES {
        benches.spawn(work(Arc::clone(&run)));
    }
    let mut found: Option<Found> = None;
    while let Some(result) = benches.join_next().await {
        let result = result.expect("a bench runs to its end");
        // The lowest seed, so that the same run reports the same case.
        found = [found, result].into_iter().flatten().min_by_key(|found| found.seed);
    }
    let found = match found {
        Some(found) if run.plan.shrink => Some(shrink(&run.plan, found).await),
        found => found,
    };
    let tally = run.tally.lock().expect("no bench panicked").clone();
    Report { found, tally }
}

async fn work(run: Arc<Run>) -> Option<Found> {
    let (plan, mut bench) = (&run.plan, None);
    loop {
        let case = run.next.fetch_add(1, Ordering::Relaxed);
        if case >= plan.cases {
            if let Some(bench) = bench {
                put_away(bench).await;
            }
            return None;
        }
        let mut here = match bench.take() {
            Some(bench) => bench,
            None => fresh(plan).await,
        };
        let seed = plan.first_seed + case;
        let steps = author::write(seed, plan.archives);
        let mut tally = Tally::new();
        let taken = take_all(&mut here, &format!("c{seed}"), &steps, &mut tally).await;
        for (what, times) in tally {
            *run.tally.lock().expect("no bench panicked").entry(what).or_default() += times;
        }
        if let Err(violation) = taken {
            run.next.store(plan.cases, Ordering::Relaxed);
            put_away(here).await;
            return Some(Found { seed, steps, violation });
        }
        bench = Some(here);
    }
}

/// Dropping a database blocks the thread, and the server waits for connections that are just being
/// made: not on a thread that has to make them.
async fn put_away(bench: Bench) {
    tokio::task::spawn_blocking(move || drop(bench)).await.expect("it can be dropped");
}

async fn fresh(plan: &Plan) -> Bench {
    let bench = Bench::new(plan.archives).await;
    if let Some((function, guard, instead)) = plan.sabotage {
        bench.database.take_out(function, guard, instead).await;
    }
    bench
}

/// Takes the steps and drains what is left.
async fn take_all(
    bench: &mut Bench,
    tag: &str,
    steps: &[Step],
    tally: &mut Tally,
) -> Result<(), (usize, String)> {
    let mut case = Case::new(bench, tag);
    for (at, step) in steps.iter().enumerate() {
        case.take(step).await.map_err(|violation| (at, violation))?;
    }
    case.drain().await.map_err(|violation| (steps.len(), violation))?;
    *tally = case.tally;
    Ok(())
}

/// Leaves out steps, in pieces and then one by one, as long as the case still fails.
async fn shrink(plan: &Plan, mut found: Found) -> Found {
    found.steps.truncate(found.violation.0 + 1);
    let (mut runs, mut piece) = (0, found.steps.len() / 2);
    let mut bench = fresh(plan).await;
    while piece > 0 {
        let mut at = 0;
        while at < found.steps.len() && runs < SHRINKS {
            runs += 1;
            let mut fewer = found.steps.clone();
            fewer.drain(at..(at + piece).min(fewer.len()));
            match take_all(&mut bench, &format!("s{runs}"), &fewer, &mut Tally::new()).await {
                Ok(()) => at += piece,
                Err(violation) => {
                    fewer.truncate(violation.0 + 1);
                    found = Found { steps: fewer, violation, ..found };
                    // What a failed case leaves behind would spoil the next.
                    put_away(std::mem::replace(&mut bench, fresh(plan).await)).await;
                }
            }
        }
        piece /= 2;
    }
    put_away(bench).await;
    found
}
