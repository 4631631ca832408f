//! Workers that claim and complete without a rail between.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::Client;
use uuid::Uuid;

use crate::database::Database;

const WORKERS: usize = 2;
const BATCH: i32 = 500;

const CLAIM: &str = "SELECT outbox_id, lease_token, payload::text, participant_id \
    FROM outbox.claim_outbox_batch($1, $2, 60, ARRAY['kafka'])";
const COMPLETE: &str = "SELECT count(*) FILTER (WHERE refusal IS NULL) FROM outbox.complete_outbox_batch($1, $2, $3, \
    array_fill('DISPATCHED'::outbox.outbox_attempt_state, ARRAY[cardinality($2::uuid[])]), \
    p_rail_references => array_fill('payments/0@1'::text, ARRAY[cardinality($2::uuid[])]), \
    p_latencies_ms => array_fill(3, ARRAY[cardinality($2::uuid[])]))";

/// Two connections that stay open between rounds, as a worker's do.
pub(crate) struct Workers {
    clients: Vec<Arc<Client>>,
}

impl Workers {
    pub(crate) async fn new(database: &Database) -> Self {
        let mut clients = Vec::new();
        for _ in 0..WORKERS {
            clients.push(Arc::new(database.connect().await));
        }
        Self { clients }
    }

    /// Time per row of at least `rows` rows, or of all there are.
    pub(crate) async fn drain(&self, rows: usize) -> Drained {
        let done = Arc::new(AtomicUsize::new(0));
        let began = Instant::now();
        let workers = self.clients.iter().enumerate().map(|(number, client)| {
            tokio::spawn(work(
                Arc::clone(client),
                format!("worker-{number}"),
                rows,
                Arc::clone(&done),
            ))
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

async fn work(client: Arc<Client>, worker: String, rows: usize, done: Arc<AtomicUsize>) {
    while done.load(Ordering::Relaxed) < rows {
        let claimed = client.query(CLAIM, &[&BATCH, &worker]).await.unwrap();
        if claimed.is_empty() {
            break;
        }
        let ids: Vec<Uuid> = claimed.iter().map(|row| row.get(0)).collect();
        let tokens: Vec<Uuid> = claimed.iter().map(|row| row.get(1)).collect();
        let completed = client.query_one(COMPLETE, &[&worker, &ids, &tokens]).await.unwrap();
        assert_eq!(usize::try_from(completed.get::<_, i64>(0)).unwrap(), ids.len());
        done.fetch_add(ids.len(), Ordering::Relaxed);
    }
}
