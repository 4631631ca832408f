//! Rows and lanes as a relay makes them, and what a rail says about them.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use trestle::delivery::{
    Breaker, Lane, LaneTerms, Lease, Outcome, Row, Settled, Settlement, Slots,
};
use trestle::rails::Rail;
use uuid::Uuid;

/// Whatever takes longer than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn row(participant: &str, sequence_id: i64, payload: &str) -> Row {
    Row {
        outbox_id: Uuid::new_v4(),
        lease_token: Uuid::new_v4(),
        tenant_id: None,
        instruction_id: format!("{participant}-{sequence_id}"),
        participant_id: participant.to_owned(),
        sequence_id,
        idempotency_key: format!("key-{sequence_id}"),
        rail_type: "test".to_owned(),
        payload: payload.to_owned(),
        headers: Vec::new(),
        attempt_no: 1,
        zombie_count: 0,
        turn_id: 1,
        in_doubt_since: None,
        batch: None,
        // Fixed, so that the size of a record is.
        created_at: std::time::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
    }
}

/// A lane under way, and the receiver of what becomes of its rows.
pub(crate) struct Sent {
    pub(crate) lane: Arc<Lane>,
    pub(crate) breaker: Arc<Breaker>,
    settled: mpsc::UnboundedReceiver<Settled>,
}

/// A lane in strict order; `halts` as with `on_failed = "halt"`.
pub(crate) fn lane(rows: Vec<Row>, halts: bool) -> Sent {
    let (sender, settled) = mpsc::unbounded_channel();
    let breaker = Arc::new(Breaker::new("test".into()));
    let terms = LaneTerms {
        rail: "rail".into(),
        key: "lane".into(),
        ordered: true,
        halts,
        lease: Lease::new(Instant::now(), Duration::from_secs(600)),
        permit: breaker.permit().unwrap(),
        taken: Arc::new(Slots::default()).take(rows.len()),
        stopping: Arc::new(AtomicBool::new(false)),
        settled: sender,
    };
    Sent { lane: Arc::new(Lane::new(rows, terms)), breaker, settled }
}

pub(crate) fn deliver(rail: &dyn Rail, rows: Vec<Row>) -> Sent {
    let sent = lane(rows, false);
    rail.deliver(Arc::clone(&sent.lane));
    sent
}

/// Delivers the rows of a lane as often as it takes, as a relay does: what is settled for good is
/// not sent again, and nothing overtakes. Returns the codes of those that were refused.
pub(crate) async fn deliver_all(rail: &dyn Rail, rows: impl Fn() -> Vec<Row>) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut refused = Vec::new();
    let mut done = 0;
    while done < rows().len() {
        assert!(Instant::now() < deadline, "{done} rows are settled, and no more");
        for settlement in deliver(rail, rows().split_off(done)).settlements().await {
            match settlement {
                Settlement::Outcome(Outcome::Delivered { .. }) => done += 1,
                Settlement::Outcome(Outcome::Refused(failure)) => {
                    refused.push(failure.error_code);
                    done += 1;
                }
                _ => {}
            }
        }
    }
    refused
}

/// Delivers a lone row as often as its destination is away, and returns its reference.
pub(crate) async fn deliver_one(rail: &dyn Rail, row: impl Fn() -> Row) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let settlement = deliver(rail, vec![row()]).settlements().await.remove(0);
        let away = matches!(
            settlement,
            Settlement::Release { .. } | Settlement::Outcome(Outcome::Unavailable { .. })
        );
        if !away || Instant::now() > deadline {
            return reference(&settlement);
        }
        // Rows that are given back are so at once.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

impl Sent {
    /// What is written down for each row, until the lane has nothing more to say.
    pub(crate) async fn settlements(mut self) -> Vec<Settlement> {
        let mut told = Vec::new();
        // The last report of a lane always settles something.
        while !self.lane.unreported().is_empty() {
            let settled = tokio::time::timeout(PATIENCE, self.settled.recv()).await;
            told.push(settled.expect("the rail reports in time").expect("the lane is there"));
        }
        told.extend(std::iter::from_fn(|| self.settled.try_recv().ok()));
        told.into_iter().map(|told| told.settlement).collect()
    }

    /// The references of rows that were all delivered.
    pub(crate) async fn references(self) -> Vec<String> {
        let settlements = self.settlements().await;
        settlements.into_iter().map(|settlement| reference(&settlement)).collect()
    }
}

pub(crate) fn reference(settlement: &Settlement) -> String {
    match settlement {
        Settlement::Outcome(Outcome::Delivered { reference: Some(reference), .. }) => {
            reference.clone()
        }
        other => panic!("not delivered: {other:?}"),
    }
}

/// The code of a row that was refused for good.
pub(crate) fn refused(settlement: &Settlement) -> &str {
    match settlement {
        Settlement::Outcome(Outcome::Refused(failure)) => &failure.error_code,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn was_given_back(settlement: &Settlement) -> bool {
    matches!(settlement, Settlement::Release { .. })
}

/// The code of a row that may have been sent to a destination that is unavailable.
pub(crate) fn in_doubt(settlement: &Settlement) -> &str {
    match settlement {
        Settlement::Outcome(Outcome::Unavailable { failure, maybe_sent: true }) => {
            &failure.error_code
        }
        other => panic!("not in doubt: {other:?}"),
    }
}
