//! Enqueue through the function against a bare INSERT into a table with the same indexes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::database::Database;
use crate::report::{Bound, Report};

const SLOT: Duration = Duration::from_secs(4);
const SLOTS: usize = 5;

const FUNCTION: &str = "SELECT outbox_id FROM outbox.enqueue_payment_outbox('payment-' || $1::int8, 'participant-' || $1::int8 % 1000, 'payment', 'kafka', $2::text::jsonb)";
const BARE: &str = "INSERT INTO bare (outbox_id, instruction_id, participant_id, sequence_id, lane_position, idempotency_key, rail_type, payload, next_attempt_at, created_at) \
    VALUES (outbox.uuidv7(), 'payment-' || $1::int8, 'participant-' || $1::int8 % 1000, $1, $1, 'payment', 'kafka', $2::text::jsonb, clock_timestamp(), clock_timestamp())";

/// Counts up for ever: no key and no number is used twice.
static NEXT: AtomicI64 = AtomicI64::new(1);

pub(crate) async fn against_bare_insert(report: &mut Report, connections: usize) {
    let database = Database::new("enqueue").await;
    database
        .run(
            "CREATE TABLE bare (LIKE outbox.payment_outbox_pending INCLUDING ALL);
         CREATE UNIQUE INDEX ON bare (instruction_id, idempotency_key);",
        )
        .await;
    let (mut bare, mut function) = (0, 0);
    for _ in 0..SLOTS {
        bare += calls(&database, BARE, connections).await;
        function += calls(&database, FUNCTION, connections).await;
    }
    let per_second = |calls: u64| calls / (SLOT.as_secs() * SLOTS as u64);
    let figures = format!("bare {}/s, function {}/s", per_second(bare), per_second(function));
    let name = format!("enqueue by function against a bare INSERT, {connections} connection(s)");
    report.ratio(&name, figures, function as f64 / bare as f64, Bound::AtLeast(0.6));
}

/// How often `connections` together run `statement`, each in a transaction of its own.
pub(crate) async fn calls(database: &Database, statement: &'static str, connections: usize) -> u64 {
    let over = Arc::new(AtomicBool::new(false));
    let mut callers = Vec::new();
    for _ in 0..connections {
        let client = database.connect().await;
        callers.push(tokio::spawn(call(client, statement, Arc::clone(&over))));
    }
    let began = Instant::now();
    tokio::time::sleep(SLOT.saturating_sub(began.elapsed())).await;
    over.store(true, Ordering::Relaxed);
    let mut sum = 0;
    for caller in callers {
        sum += caller.await.unwrap();
    }
    sum
}

async fn call(client: Client, statement: &str, over: Arc<AtomicBool>) -> u64 {
    let payload = format!(
        "{{\"amount\": \"10.00\", \"currency\": \"EUR\", \"note\": \"{}\"}}",
        "x".repeat(450)
    );
    let statement = client.prepare(statement).await.unwrap();
    let mut calls = 0;
    while !over.load(Ordering::Relaxed) {
        client
            .execute(&statement, &[&NEXT.fetch_add(1, Ordering::Relaxed), &payload])
            .await
            .unwrap();
        calls += 1;
    }
    calls
}

pub(crate) const fn function() -> &'static str {
    FUNCTION
}
