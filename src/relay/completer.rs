//! Writes outcomes down in batches, in the order of each lane.
//!
//! What happens if the process dies here: before the call, the leases expire and the rows are sent
//! again (the one duplicate window); during it, the database has all of the batch or nothing; after
//! it, nothing is lost.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::ledger::{self, Entry};
use super::wake::Wake;
use crate::admin::metrics;
use crate::delivery::{Settled, Settlement, Taken};
use crate::failpoint::failpoint;
use crate::store::{OutcomeRow, Recorded, StoreError, WorkerStore, whole_seconds};

/// Lanes are independent, so two batches can be written at once; those of one lane never are.
const WRITERS: usize = 2;
/// At most so many outcomes in one call.
const BATCH: usize = 1_000;
/// How long an outcome waits for company: as long as the last batch took to write, within these
/// bounds, so that a busy database gets fewer and larger batches.
const GATHER: std::ops::Range<Duration> = Duration::from_millis(2)..Duration::from_millis(25);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What the writers share.
pub(super) struct Completer {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    /// After so long the leases are gone and an outcome can only be refused.
    pub(super) patience: Duration,
    pub(super) wake: Arc<Wake>,
}

impl Completer {
    /// Starts the writers. They end when every lane is gone and everything is written.
    pub(super) fn start(
        self: Arc<Self>,
        mut settled: mpsc::UnboundedReceiver<Settled>,
    ) -> JoinHandle<()> {
        tokio::spawn(async move {
            let mut queues = Vec::new();
            let mut writers = Vec::new();
            for _ in 0..WRITERS {
                // Unbounded, but never longer than there are rows under way.
                let (queue, receiver) = mpsc::unbounded_channel();
                queues.push(queue);
                writers.push(tokio::spawn(Arc::clone(&self).write(receiver)));
            }
            while let Some(item) = settled.recv().await {
                // A writer ends only after this sender.
                let _ = queues[writer_of(&item.lane)].send(item);
            }
            drop(queues);
            for writer in writers {
                if let Err(error) = writer.await {
                    tracing::error!(%error, "a writer of outcomes died");
                }
            }
        })
    }

    async fn write(self: Arc<Self>, mut queue: mpsc::UnboundedReceiver<Settled>) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut gather = GATHER.start;
        while queue.recv_many(&mut batch, BATCH).await > 0 {
            if batch.len() < BATCH {
                tokio::time::sleep(gather).await;
                while batch.len() < BATCH {
                    match queue.try_recv() {
                        Ok(item) => batch.push(item),
                        Err(_) => break,
                    }
                }
            }
            failpoint("acknowledged");
            let began = Instant::now();
            self.write_batch(std::mem::take(&mut batch)).await;
            gather = began.elapsed().clamp(GATHER.start, GATHER.end);
        }
    }

    async fn write_batch(&self, batch: Vec<Settled>) {
        let mut entries = Vec::with_capacity(batch.len());
        let mut releases: Vec<Release> = Vec::new();
        for item in batch {
            let Settled { outbox_id, lease_token, rail, lane, latency, age, settlement, slot } =
                item;
            match settlement {
                Settlement::Outcome(outcome) => {
                    let row = ledger::row(outbox_id, lease_token, latency, outcome);
                    if let Some(code) = &row.error_code {
                        metrics::rail_error(&rail, code);
                    }
                    entries.push(Entry {
                        row,
                        rail,
                        participant_id: lane,
                        latency,
                        age,
                        _slot: slot,
                    });
                }
                Settlement::Release { delay } => {
                    Release::add(&mut releases, delay, (outbox_id, lease_token), slot);
                }
            }
        }
        if !entries.is_empty() {
            failpoint("before_completion");
            self.complete(&entries).await;
            failpoint("after_completion");
        }
        drop(entries);
        for release in releases {
            failpoint("releasing");
            self.release(&release).await;
        }
    }

    async fn complete(&self, entries: &[Entry]) {
        let rows: Vec<&OutcomeRow> = entries.iter().map(|entry| &entry.row).collect();
        match self.insist(|| self.store.complete(&self.worker_id, &rows)).await {
            Ok(recorded) => {
                self.tell(entries, &recorded);
                // The lanes are free, and may have more rows.
                self.wake.now();
            }
            // One of them is at fault: the others must not pay for it.
            Err(error) if rows.len() > 1 && (error.is_about_data() || error.is_integrity()) => {
                for entry in entries {
                    Box::pin(self.complete(std::slice::from_ref(entry))).await;
                }
            }
            Err(error) => {
                let outbox_ids: Vec<Uuid> = rows.iter().map(|row| row.outbox_id).take(10).collect();
                tracing::error!(%error, rows = rows.len(), ?outbox_ids, "outcomes could not be written; their leases will expire");
                if error.is_integrity() {
                    metrics::integrity_violation();
                }
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
                    self.wake.progressed();
                    if state == "RETRYABLE" {
                        self.wake
                            .at(Instant::now() + ledger::retry_delay(entry, recorded.attempt_no));
                    }
                    if state == "FAILED" {
                        ledger::log_failure(entry);
                    }
                }
                (None, refusal) => {
                    let code = refusal.as_deref().unwrap_or("unknown");
                    metrics::concurrency_event(code);
                    tracing::info!(outbox_id = %recorded.outbox_id, code, "CONCURRENCY_EVENT: {}", meaning(code));
                }
            }
        }
    }

    async fn release(&self, release: &Release) {
        let call = || self.store.release(&self.worker_id, &release.leases, release.delay_seconds);
        match self.insist(call).await {
            Ok(_) => {
                let seconds = u64::try_from(release.delay_seconds).unwrap_or(0);
                self.wake.at(Instant::now() + Duration::from_secs(seconds));
            }
            Err(error) => {
                tracing::error!(%error, rows = release.leases.len(), "leases could not be given back; they will expire");
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

/// Rows that are given back with the same delay.
struct Release {
    delay_seconds: i32,
    leases: Vec<(Uuid, Uuid)>,
    slots: Vec<Taken>,
}

impl Release {
    fn add(releases: &mut Vec<Self>, delay: Duration, lease: (Uuid, Uuid), slot: Taken) {
        let delay_seconds = whole_seconds(delay);
        match releases.iter_mut().find(|release| release.delay_seconds == delay_seconds) {
            Some(release) => {
                release.leases.push(lease);
                release.slots.push(slot);
            }
            None => releases.push(Self { delay_seconds, leases: vec![lease], slots: vec![slot] }),
        }
    }
}

fn meaning(refusal: &str) -> &'static str {
    match refusal {
        "P7001" => "the ledger has the outcome of this row already",
        "P7002" => "the lease of this row is lost, its outcome was not written",
        "P7006" => "an earlier row of the lane has no outcome, so this one was not written",
        _ => "the outcome of this row was not written",
    }
}

fn writer_of(lane: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    lane.hash(&mut hasher);
    usize::try_from(hasher.finish() % WRITERS as u64).unwrap_or(0)
}
