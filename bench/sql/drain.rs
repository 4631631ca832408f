//! Workers that claim and complete without a rail between, by the calls that the bridge makes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use trestle::config::Secret;
use trestle::delivery::Row;
use trestle::store::{Claim, OutcomeRow, WorkerStore};

use crate::database::Database;

const WORKERS: usize = 2;
const BATCH: i32 = 500;
/// As many rows of a lane as the bridge takes at a time.
const LANE_ROWS: i32 = 100;
const LEASE_SECONDS: u16 = 60;

/// Two connections that stay open between rounds, as a worker's do.
pub(crate) struct Workers {
    stores: Vec<WorkerStore>,
}

impl Workers {
    pub(crate) async fn new(database: &Database) -> Self {
        let (url, lease) = (Secret::new(database.url()), Duration::from_secs(LEASE_SECONDS.into()));
        let mut stores = Vec::new();
        for _ in 0..WORKERS {
            let store = WorkerStore::new(&url, lease).unwrap();
            // Connects, which is not what is measured.
            store.schema_version().await.unwrap();
            stores.push(store);
        }
        Self { stores }
    }

    /// Time per row of at least `rows` rows, or of all there are.
    pub(crate) async fn drain(&self, rows: usize) -> Drained {
        let done = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let workers = self.stores.iter().enumerate().map(|(number, store)| {
            tokio::spawn(work(store.clone(), format!("worker-{number}"), rows, Arc::clone(&done)))
        });
        for worker in workers.collect::<Vec<_>>() {
            worker.await.unwrap();
        }
        Drained { rows: done.load(Ordering::Relaxed), took: began.elapsed() }
    }
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Drained {
    pub(crate) rows: usize,
    pub(crate) took: Duration,
}

impl Drained {
    pub(crate) fn add(&mut self, other: Self) {
        self.rows += other.rows;
        self.took += other.took;
    }

    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn per_second(self) -> f64 {
        self.rows as f64 / self.took.as_secs_f64()
    }
}

async fn work(store: WorkerStore, worker: String, rows: usize, done: Arc<AtomicUsize>) {
    let claim = Claim {
        rows: BATCH,
        worker_id: &worker,
        lease_seconds: LEASE_SECONDS.into(),
        rail_type: "kafka",
        tenant_id: None,
        lane_rows: LANE_ROWS,
        shards: None,
    };
    while done.load(Ordering::Relaxed) < rows {
        let claimed = store.claim(&claim).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        let outcomes: Vec<OutcomeRow> = claimed.iter().map(delivered).collect();
        let outcomes: Vec<&OutcomeRow> = outcomes.iter().collect();
        let completed = store.complete(&worker, &outcomes).await.unwrap();
        assert!(completed.recorded.iter().all(|recorded| recorded.refusal.is_none()));
        done.fetch_add(claimed.len(), Ordering::Relaxed);
    }
}

fn delivered(row: &Row) -> OutcomeRow {
    OutcomeRow {
        outbox_id: row.outbox_id,
        lease_token: row.lease_token,
        state: "DISPATCHED",
        rail_reference: Some(format!("payments/0@{}", row.sequence_id)),
        rail_code: None,
        error_code: None,
        error_message: None,
        latency_ms: 3,
        retry_delay_seconds: None,
        counted: true,
    }
}
