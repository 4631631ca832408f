//! Lanes for a rail to carry, and what it says of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::mpsc;
use trestle::delivery::{
    Batch, Breaker, Lane, LaneTerms, Lease, Outcome, Row, Settled, Settlement, Slots,
};
use trestle::rails::Rail;
use uuid::Uuid;

/// Longer than any lane of these tests can take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Part of every payload, and of nothing else.
pub(crate) const MARK: &str = "GB33BUKB20201555555555";

/// A row as PostgreSQL would print it, with what a careless rail would spoil.
pub(crate) fn row(participant: &str, sequence_id: i64) -> Row {
    Row {
        outbox_id: Uuid::new_v4(),
        lease_token: Uuid::new_v4(),
        tenant_id: None,
        instruction_id: format!("instruction-{sequence_id}"),
        participant_id: participant.to_owned(),
        sequence_id,
        idempotency_key: format!("{participant}-{sequence_id}"),
        rail_type: "test".to_owned(),
        payload: format!(
            r#"{{"to": "{MARK}", "note": "Zoë ✓ 東京 \u0007", "amount": 12345678901234567890.{sequence_id:02}, "n": 1E400}}"#
        ),
        headers: Vec::new(),
        attempt_no: 1,
        zombie_count: 0,
        turn_id: 1,
        in_doubt_since: None,
        batch: None,
        created_at: SystemTime::now(),
    }
}

pub(crate) fn rows(participant: &str, count: i64) -> Vec<Row> {
    (1..=count).map(|sequence_id| row(participant, sequence_id)).collect()
}

/// How a lane is to be carried.
pub(crate) struct Terms {
    pub(crate) ordered: bool,
    pub(crate) halts: bool,
    pub(crate) lease: Duration,
    pub(crate) stopping: Arc<AtomicBool>,
}

impl Default for Terms {
    fn default() -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        Self { ordered: true, halts: false, lease: Duration::from_secs(3_600), stopping }
    }
}

impl Terms {
    pub(crate) fn unordered() -> Self {
        Self { ordered: false, ..Self::default() }
    }

    pub(crate) fn halting() -> Self {
        Self { halts: true, ..Self::default() }
    }

    pub(crate) fn leased_for(lease: Duration) -> Self {
        Self { lease, ..Self::default() }
    }

    pub(crate) fn stopping() -> Self {
        let terms = Self::default();
        terms.stopping.store(true, Ordering::Relaxed);
        terms
    }
}

/// A lane that a rail has been given.
pub(crate) struct Carried(mpsc::UnboundedReceiver<Settled>);

/// The shard of every row, on a rail that delivers in batches.
pub(crate) const SHARD: i16 = 0;
static LAST_BATCH: AtomicI64 = AtomicI64::new(0);

/// The number of the last batch of any rail.
pub(crate) fn last_batch() -> i64 {
    LAST_BATCH.load(Ordering::Relaxed)
}

/// Hands a lane to a rail; to one that delivers in batches, as a batch.
pub(crate) fn deliver(rail: &dyn Rail, mut rows: Vec<Row>, terms: Terms) -> Carried {
    if let Some(sharded) = rail.sharded() {
        sharded.places();
        let number = LAST_BATCH.fetch_add(1, Ordering::Relaxed) + 1;
        rows.iter_mut().for_each(|row| row.batch = Some(Batch { shard: SHARD, number }));
    }
    let (settled, receiver) = mpsc::unbounded_channel();
    let breaker = Arc::new(Breaker::new("test".into()));
    let terms = LaneTerms {
        rail: "rail".into(),
        key: rows[0].participant_id.as_str().into(),
        ordered: terms.ordered,
        halts: terms.halts,
        lease: Lease::new(Instant::now(), terms.lease),
        permit: breaker.permit().unwrap(),
        taken: Arc::new(Slots::default()).take(rows.len()),
        stopping: terms.stopping,
        settled,
    };
    rail.deliver(Arc::new(Lane::new(rows, terms)));
    if let Some(sharded) = rail.sharded() {
        sharded.seal();
    }
    Carried(receiver)
}

impl Carried {
    /// Everything that is settled, once the rail has let go of the lane.
    pub(crate) async fn settled(mut self) -> Vec<Settled> {
        let all = async {
            let mut all = Vec::new();
            while let Some(settled) = self.0.recv().await {
                all.push(settled);
            }
            all
        };
        let all = tokio::time::timeout(PATIENCE, all).await.expect("the rail lets go of the lane");
        let forgotten = all.iter().any(|settled| code(settled) == "OUTCOME_UNKNOWN");
        assert!(!forgotten, "every row is reported: {all:?}");
        all
    }

    /// The outcome of a lane of one row.
    pub(crate) async fn outcome(self) -> Outcome {
        let mut settled = self.settled().await;
        assert_eq!(settled.len(), 1, "{settled:?}");
        match settled.remove(0).settlement {
            Settlement::Outcome(outcome) => outcome,
            Settlement::Release { .. } => Outcome::NotSent,
        }
    }
}

/// What became of a row, in one word.
pub(crate) fn word(settled: &Settled) -> &'static str {
    match &settled.settlement {
        Settlement::Outcome(Outcome::Delivered { .. }) => "delivered",
        Settlement::Outcome(Outcome::Refused(_)) => "refused",
        Settlement::Outcome(Outcome::Retry(_) | Outcome::Unavailable { .. }) => "in doubt",
        Settlement::Outcome(Outcome::NotSent | Outcome::NotYet { .. } | Outcome::Undecided(_))
        | Settlement::Release { .. } => "released",
    }
}

pub(crate) fn words(settled: &[Settled]) -> Vec<&'static str> {
    settled.iter().map(word).collect()
}

fn code(settled: &Settled) -> &str {
    match &settled.settlement {
        Settlement::Outcome(
            Outcome::Refused(failure)
            | Outcome::Retry(failure)
            | Outcome::Unavailable { failure, .. },
        ) => &failure.error_code,
        _ => "",
    }
}
