//! Writes outcomes down in batches, in the order of each lane. One call after the other: two at once would be
//! smaller, and cost the database more for each row.
//!
//! What happens if the process dies here: before the call, the leases expire and the rows are sent
//! again (the one duplicate window); during it, the database has all of the batch or nothing; after
//! it, nothing is lost.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::ledger::{self, Entry};
use super::route::Route;
use super::wake::Wake;
use crate::admin::metrics;
use crate::admin::spans::Spans;
use crate::delivery::{Settled, Settlement, Taken};
use crate::failpoint::{failpoint, failpoint_soon};
use crate::store::{Completed, OutcomeRow, Recorded, StoreError, WorkerStore, whole_seconds};

/// At most so many new outcomes in one call.
const BATCH: usize = 1_000;
/// With those that wait for their lanes the database takes at most so many.
const MOST: usize = 10_000;
/// How long an outcome waits for company: twice as long as the last batch took to write, within these
/// bounds, so that a busy database gets fewer and larger batches.
const GATHER: std::ops::Range<Duration> = Duration::from_millis(2)..Duration::from_millis(25);
/// One of a shard's batch waits for the rest of its batch alone: until that is written, the shard stands still.
const GATHER_BATCH: Duration = Duration::from_millis(1);
/// So many are company enough.
const ENOUGH: usize = 100;
/// When a lane that somebody else has locked is looked at again.
const BUSY_PAUSE: Duration = Duration::from_millis(250);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Completer {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    /// After so long the leases are gone and an outcome can only be refused.
    pub(super) patience: Duration,
    pub(super) routes: Vec<Arc<Route>>,
    pub(super) wake: Arc<Wake>,
    /// Where spans of attempts go, if anybody wants them.
    pub(super) spans: Option<Spans>,
}

impl Completer {
    /// Starts to write, and returns the way to it. It ends when every lane is gone and everything is written.
    pub(super) fn start(self) -> (mpsc::UnboundedSender<Settled>, JoinHandle<()>) {
        // Unbounded, but never longer than there are rows under way.
        let (settled, queue) = mpsc::unbounded_channel();
        (settled, tokio::spawn(self.write(queue)))
    }

    async fn write(self, mut queue: mpsc::UnboundedReceiver<Settled>) {
        let mut items = Vec::with_capacity(BATCH);
        // What somebody else's lock on its lane kept from being written stays in front of what is new.
        let mut batch = Batch::default();
        let mut gather = GATHER.start;
        while receive(&mut queue, &mut items, batch.len(), gather).await {
            let waited = !batch.is_empty();
            items.drain(..).for_each(|item| batch.add(item));
            failpoint("acknowledged");
            let began = Instant::now();
            batch = self.write_batch(batch).await;
            if !batch.is_empty() && !waited {
                tracing::warn!(
                    "somebody else has locked a lane: its outcomes wait, the others do not"
                );
            }
            gather = (2 * began.elapsed()).clamp(GATHER.start, GATHER.end);
        }
    }

    /// Returns what is to be asked for again.
    async fn write_batch(&self, batch: Batch) -> Batch {
        let mut busy = Batch::default();
        if !batch.entries.is_empty() {
            failpoint("before_completion");
            failpoint_soon("completing");
            busy.entries = self.complete(batch.entries).await;
            failpoint("after_completion");
        }
        for release in batch.releases {
            failpoint("releasing");
            busy.releases.extend(self.release(release).await);
        }
        busy
    }

    async fn complete(&self, entries: Vec<Entry>) -> Vec<Entry> {
        let rows: Vec<&OutcomeRow> = entries.iter().map(|entry| &entry.row).collect();
        let heard = self.wake.heard();
        match self.insist(|| self.store.complete(&self.worker_id, &rows)).await {
            Ok(Completed { recorded, more }) => {
                self.tell(&entries, &recorded);
                let refused = entries.iter().zip(&recorded).filter(|(_, told)| told.is_refused());
                self.find_out(refused.map(|(entry, _)| entry));
                let busy =
                    |(entry, recorded): (Entry, Recorded)| recorded.is_busy().then_some(entry);
                // The answer of an earlier call may have got lost, and what it said of more.
                let lost = recorded.iter().any(Recorded::is_refused);
                let busy = entries.into_iter().zip(recorded).filter_map(busy).collect();
                if more || lost || self.may_have_missed(heard) {
                    self.wake.now();
                }
                busy
            }
            // One of them is at fault: the others must not pay for it.
            Err(error) if rows.len() > 1 && (error.is_about_data() || error.is_integrity()) => {
                let mut busy: Vec<Entry> = Vec::new();
                for entry in entries {
                    // Behind a row that waits it would be refused as too early.
                    if busy.iter().any(|kept| kept.is_of_lane(&entry)) {
                        busy.push(entry);
                    } else {
                        busy.extend(Box::pin(self.complete(vec![entry])).await);
                    }
                }
                busy
            }
            Err(error) => {
                let outbox_ids: Vec<Uuid> = rows.iter().map(|row| row.outbox_id).take(10).collect();
                tracing::error!(%error, rows = rows.len(), ?outbox_ids, "outcomes could not be written; their leases will expire");
                if error.is_integrity() {
                    metrics::integrity_violation();
                }
                self.find_out(&entries);
                Vec::new()
            }
        }
    }

    /// Whether a claim may find something, of which the database has said nothing with the outcomes: nobody tells us of
    /// new work, or somebody did while the shard of these rows still seemed to be taken, or a destination is back.
    fn may_have_missed(&self, heard: u64) -> bool {
        !self.wake.is_told()
            || self.wake.heard() != heard
            || self.routes.iter().any(|route| route.is_open_again())
    }

    /// A batch of which the database does not take an outcome may be one that it has forgotten. Called
    /// while the rows still count as under way, so that nothing of their shard is claimed before.
    fn find_out<'a>(&self, entries: impl IntoIterator<Item = &'a Entry>) {
        let shard = |entry: &'a Entry| Some((&*entry.rail, entry.batch?.shard));
        let shards: HashSet<(&str, i16)> = entries.into_iter().filter_map(shard).collect();
        for (rail, shard) in shards {
            if let Some(route) = self.routes.iter().find(|route| &*route.name == rail) {
                route.find_out(shard);
            }
        }
    }

    fn tell(&self, entries: &[Entry], recorded: &[Recorded]) {
        metrics::completed_batch(recorded.len());
        for (entry, recorded) in entries.iter().zip(recorded) {
            match (&recorded.state, &recorded.refusal) {
                (Some(state), _) => {
                    metrics::attempt(state);
                    ledger::measure(entry, state);
                    if let Some(spans) = &self.spans {
                        ledger::trace(spans, entry, state, recorded);
                    }
                    if state == "RETRYABLE" {
                        self.wake
                            .at(Instant::now() + ledger::retry_delay(entry, recorded.attempt_no));
                    } else {
                        self.wake.progressed();
                    }
                    if state == "FAILED" {
                        ledger::log_failure(entry);
                    }
                }
                (None, _) if recorded.is_busy() => {}
                (None, refusal) => {
                    let code = refusal.as_deref().unwrap_or("unknown");
                    metrics::concurrency_event(code);
                    tracing::info!(outbox_id = %entry.row.outbox_id, code, "CONCURRENCY_EVENT: {}", meaning(code));
                }
            }
        }
    }

    /// Returns what is to be asked for again.
    async fn release(&self, release: Release) -> Option<Release> {
        let call = || self.store.release(&self.worker_id, &release.leases, release.delay_seconds);
        match self.insist(call).await {
            Ok(busy) => {
                let seconds = u64::try_from(release.delay_seconds).unwrap_or(0);
                self.wake.given_back_until(Instant::now() + Duration::from_secs(seconds));
                release.only(&busy)
            }
            Err(error) => {
                tracing::error!(%error, rows = release.leases.len(), "leases could not be given back; they will expire");
                None
            }
        }
    }

    /// Calls again while the database is away, until the leases are gone anyway.
    async fn insist<T, F>(&self, call: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match call().await {
                // A standby that is being promoted, a password that is being changed, a migration:
                // all of these pass, and an outcome that is known is worth waiting for.
                Err(error)
                    if !error.is_about_data()
                        && !error.is_integrity()
                        && began.elapsed() < self.patience =>
                {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                result => return result,
            }
        }
    }
}

/// Waits for outcomes, and a little for their company. Says when there will be none any more.
async fn receive(
    queue: &mut mpsc::UnboundedReceiver<Settled>,
    items: &mut Vec<Settled>,
    waiting: usize,
    gather: Duration,
) -> bool {
    let room = BATCH.min(MOST.saturating_sub(waiting));
    if waiting == 0 {
        if queue.recv_many(items, room).await == 0 {
            return false;
        }
    } else if let Ok(0) = tokio::time::timeout(BUSY_PAUSE, queue.recv_many(items, room)).await {
        // Nobody sends any more, or there is no room; but what waits is still to be written.
        tokio::time::sleep(BUSY_PAUSE).await;
    }
    if items.len() < ENOUGH.min(room) && !items.is_empty() {
        let of_batch = items.iter().any(|item| item.batch.is_some());
        tokio::time::sleep(if of_batch { GATHER_BATCH } else { gather }).await;
        while items.len() < room {
            match queue.try_recv() {
                Ok(item) => items.push(item),
                Err(_) => break,
            }
        }
    }
    true
}

/// What is written in one go.
#[derive(Default)]
struct Batch {
    entries: Vec<Entry>,
    releases: Vec<Release>,
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.entries.len() + self.releases.iter().map(|release| release.leases.len()).sum::<usize>()
    }

    fn add(&mut self, item: Settled) {
        let Settled {
            outbox_id,
            lease_token,
            rail,
            lane,
            latency,
            age,
            settlement,
            batch,
            trace,
            slot,
        } = item;
        match settlement {
            Settlement::Outcome(outcome) => {
                let row = ledger::row(outbox_id, lease_token, latency, outcome);
                if let Some(code) = &row.error_code {
                    metrics::rail_error(&rail, code);
                }
                let participant_id = lane;
                let _slot = slot;
                let entry = Entry { row, rail, participant_id, latency, age, batch, trace, _slot };
                self.entries.push(entry);
            }
            Settlement::Release { delay } => {
                let delay_seconds = whole_seconds(delay);
                let same = |release: &&mut Release| release.delay_seconds == delay_seconds;
                match self.releases.iter_mut().find(same) {
                    Some(release) => release.add((outbox_id, lease_token), slot),
                    None => {
                        let mut release = Release::after(delay_seconds);
                        release.add((outbox_id, lease_token), slot);
                        self.releases.push(release);
                    }
                }
            }
        }
    }
}

/// Rows that are given back with the same delay.
struct Release {
    delay_seconds: i32,
    leases: Vec<(Uuid, Uuid)>,
    slots: Vec<Taken>,
}

impl Release {
    fn after(delay_seconds: i32) -> Self {
        Self { delay_seconds, leases: Vec::new(), slots: Vec::new() }
    }

    fn add(&mut self, lease: (Uuid, Uuid), slot: Taken) {
        self.leases.push(lease);
        self.slots.push(slot);
    }

    /// What of it is busy, if anything.
    fn only(self, busy: &[Uuid]) -> Option<Self> {
        let mut left = Self::after(self.delay_seconds);
        for (lease, slot) in self.leases.into_iter().zip(self.slots) {
            if busy.contains(&lease.0) {
                left.add(lease, slot);
            }
        }
        (!left.leases.is_empty()).then_some(left)
    }
}

fn meaning(refusal: &str) -> &'static str {
    match refusal {
        "P7001" => {
            "the ledger has the outcome of this row already, maybe from a call of ours whose answer got lost"
        }
        "P7002" => "the lease of this row is lost, its outcome was not written",
        "P7006" => "an earlier row of the lane has no outcome, so this one was not written",
        _ => "the outcome of this row was not written",
    }
}
