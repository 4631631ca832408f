//! What it costs the producers that a sleeping worker is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::database::Database;
use crate::drain::Workers;
use crate::enqueue;
use crate::report::{Bound, Report};

const CONNECTIONS: usize = 8;
const SLOTS: usize = 5;
/// How long a worker sleeps when nobody wakes it.
const POLL: Duration = Duration::from_millis(250);

pub(crate) async fn cost(report: &mut Report) {
    let database = Arc::new(Database::new("wake_up").await);
    let (mut with, mut without) = (0, 0);
    for _ in 0..SLOTS {
        with += slot(&database, true).await;
        without += slot(&database, false).await;
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
async fn slot(database: &Arc<Database>, wake_up: bool) -> u64 {
    let switch = if wake_up { "ENABLE" } else { "DISABLE" };
    let trigger = "TRIGGER payment_outbox_pending_notify";
    database.run(&format!("ALTER TABLE outbox.payment_outbox_pending {switch} {trigger}")).await;
    let over = Arc::new(AtomicBool::new(false));
    let sleeper = tokio::spawn(sleep_and_drain(Arc::clone(database), Arc::clone(&over)));
    let calls = enqueue::calls(database, enqueue::function(), CONNECTIONS).await;
    over.store(true, Ordering::Relaxed);
    sleeper.await.unwrap();
    Workers::new(database).await.drain(usize::MAX).await;
    calls
}

async fn sleep_and_drain(database: Arc<Database>, over: Arc<AtomicBool>) {
    let workers = Workers::new(&database).await;
    let lock = database.connect().await;
    let (_listener, mut ears) = database.listen().await;
    while !over.load(Ordering::Relaxed) {
        // Whoever enqueues from here on, until the lock is given back, notifies.
        lock.batch_execute("SELECT pg_advisory_lock(outbox.wake_up_key())").await.unwrap();
        workers.drain(500).await;
        let _ = tokio::time::timeout(POLL, ears.recv()).await;
        lock.batch_execute("SELECT pg_advisory_unlock(outbox.wake_up_key())").await.unwrap();
        while workers.drain(500).await.rows > 0 && !over.load(Ordering::Relaxed) {}
    }
}
