//! What it costs the producers that a sleeping worker is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::database::Database;
use crate::drain::Workers;
use crate::enqueue::Callers;
use crate::report::{Bound, Report};

const CONNECTIONS: usize = 8;
const SLOT: Duration = Duration::from_secs(2);
const SLOTS: usize = 10;
const BATCH: usize = 500;
/// How long a worker waits after a claim that came back nearly empty.
const DEBOUNCE: Duration = Duration::from_millis(10);
/// How long a worker sleeps when nobody wakes it.
const POLL: Duration = Duration::from_millis(250);

pub(crate) async fn cost(report: &mut Report) {
    let database = Arc::new(Database::new("wake_up").await);
    let callers = Callers::enqueue(&database, CONNECTIONS).await;
    let (mut with, mut without) = (0, 0);
    for _ in 0..SLOTS {
        with += slot(&database, &callers, true).await;
        without += slot(&database, &callers, false).await;
    }
    let figures = format!("{without} calls without, {with} with");
    report.ratio(
        "enqueue with the wake-up against without, 8 connections",
        figures,
        with as f64 / without as f64,
        Bound::AtLeast(0.9),
    );
}

/// Calls of eight producers while a worker sleeps, is woken (or polls), drains and sleeps again.
async fn slot(database: &Arc<Database>, callers: &Callers, wake_up: bool) -> u64 {
    let switch = if wake_up { "ENABLE" } else { "DISABLE" };
    let trigger = "TRIGGER payment_outbox_pending_notify";
    database.run(&format!("ALTER TABLE outbox.payment_outbox_pending {switch} {trigger}")).await;
    let over = Arc::new(AtomicBool::new(false));
    let sleeper = tokio::spawn(sleep_and_drain(Arc::clone(database), Arc::clone(&over)));
    let calls = callers.calls(SLOT).await;
    over.store(true, Ordering::Relaxed);
    sleeper.await.unwrap();
    Workers::new(database).await.drain(usize::MAX).await;
    calls
}

/// As a bridge does: it sleeps only when a claim after the debounce still finds nothing.
async fn sleep_and_drain(database: Arc<Database>, over: Arc<AtomicBool>) {
    let workers = Workers::new(&database).await;
    let lock = database.connect().await;
    let (_listener, mut ears) = database.listen().await;
    while !over.load(Ordering::Relaxed) {
        while workers.drain(BATCH).await.rows > 0 && !over.load(Ordering::Relaxed) {
            tokio::time::sleep(DEBOUNCE).await;
        }
        // Whoever enqueues from here on, until the lock is given back, notifies.
        lock.batch_execute("SELECT pg_advisory_lock(outbox.wake_up_key())").await.unwrap();
        if workers.drain(BATCH).await.rows == 0 {
            let _ = tokio::time::timeout(POLL, ears.recv()).await;
        }
        lock.batch_execute("SELECT pg_advisory_unlock(outbox.wake_up_key())").await.unwrap();
    }
}
