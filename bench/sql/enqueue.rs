//! Enqueue through the function against a bare INSERT into a table with the same indexes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tokio_postgres::{Client, Statement};

use crate::database::Database;
use crate::report::{Bound, Report};

/// Short and many, so that a slow second of the machine hits both sides.
const SLOT: Duration = Duration::from_secs(1);
const SLOTS: usize = 20;

const FUNCTION: &str = "SELECT outbox_id FROM outbox.enqueue_payment_outbox('payment-' || $1::int8, 'participant-' || $1::int8 % 1000, 'payment', 'kafka', $2::text::jsonb)";
const BARE: &str = "INSERT INTO bare (outbox_id, instruction_id, participant_id, sequence_id, lane_position, idempotency_key, rail_type, payload, next_attempt_at, created_at) \
    VALUES (outbox.uuidv7(), 'payment-' || $1::int8, 'participant-' || $1::int8 % 1000, $1, $1, 'payment', 'kafka', $2::text::jsonb, clock_timestamp(), clock_timestamp()) RETURNING outbox_id";

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
    let bare_callers = Callers::new(&database, BARE, connections).await;
    let callers = Callers::new(&database, FUNCTION, connections).await;
    let (mut bare, mut function) = (0, 0);
    for _ in 0..SLOTS {
        bare += bare_callers.calls(SLOT).await;
        function += callers.calls(SLOT).await;
    }
    let per_second = |calls: u64| calls / (SLOT.as_secs() * SLOTS as u64);
    let figures = format!("bare {}/s, function {}/s", per_second(bare), per_second(function));
    let name = format!("enqueue by function against a bare INSERT, {connections} connection(s)");
    report.ratio(&name, figures, function as f64 / bare as f64, Bound::AtLeast(0.6));
}

/// Connections that run one statement again and again, and stay open between the slots.
pub(crate) struct Callers {
    callers: Vec<Arc<(Client, Statement)>>,
}

impl Callers {
    pub(crate) async fn enqueue(database: &Database, connections: usize) -> Self {
        Self::new(database, FUNCTION, connections).await
    }

    async fn new(database: &Database, statement: &'static str, connections: usize) -> Self {
        let mut callers = Vec::new();
        for _ in 0..connections {
            let client = database.connect().await;
            let statement = client.prepare(statement).await.unwrap();
            callers.push(Arc::new((client, statement)));
        }
        Self { callers }
    }

    /// How often they run it together in `slot`, each call in a transaction of its own.
    pub(crate) async fn calls(&self, slot: Duration) -> u64 {
        let end = Instant::now() + slot;
        let calls = self.callers.iter().map(|caller| tokio::spawn(call(Arc::clone(caller), end)));
        let mut sum = 0;
        for calls in calls.collect::<Vec<_>>() {
            sum += calls.await.unwrap();
        }
        sum
    }
}

async fn call(caller: Arc<(Client, Statement)>, end: Instant) -> u64 {
    let payload = format!(
        "{{\"amount\": \"10.00\", \"currency\": \"EUR\", \"note\": \"{}\"}}",
        "x".repeat(450)
    );
    let (client, statement) = &*caller;
    let mut calls = 0;
    while Instant::now() < end {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        client.query_one(statement, &[&number, &payload]).await.unwrap();
        calls += 1;
    }
    calls
}
