//! From claimed rows to lanes in the hands of their rail.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::route::Route;
use crate::delivery::{Lane, LaneTerms, Lease, Outcome, Permit, Row, Settled, Settlement};
use crate::failpoint::failpoint;

/// Hands lanes to their rails, and remembers those under way.
pub(super) struct Dispatcher {
    pub(super) stopping: Arc<AtomicBool>,
    /// To whoever writes outcomes down.
    settled: mpsc::UnboundedSender<Settled>,
    under_way: Mutex<Vec<Weak<Lane>>>,
    traced: bool,
}

/// The lease that a claim brought.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) asked_at: Instant,
    pub(super) length: Duration,
}

impl Dispatcher {
    /// `traced`: spans are made of what is delivered.
    pub(super) fn new(settled: mpsc::UnboundedSender<Settled>, traced: bool) -> Self {
        Self {
            stopping: Arc::new(AtomicBool::new(false)),
            settled,
            under_way: Mutex::new(Vec::new()),
            traced,
        }
    }

    fn remember(&self, lane: &Arc<Lane>) {
        let mut lanes = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() == lanes.capacity() {
            lanes.retain(|lane| lane.strong_count() > 0);
        }
        lanes.push(Arc::downgrade(lane));
    }

    /// The lanes that are under way, for whoever renews their leases.
    pub(super) fn under_way(&self) -> Vec<Arc<Lane>> {
        let mut lanes = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.retain(|lane| lane.strong_count() > 0);
        lanes.iter().filter_map(Weak::upgrade).collect()
    }

    /// Gives claimed rows to the rail, lane by lane.
    pub(super) fn dispatch(&self, route: &Route, rows: Vec<Row>, terms: Terms) {
        for lane in lanes(rows, route.ordered) {
            self.dispatch_lane(route, lane, terms);
        }
        if let Some(sharded) = route.rail.sharded() {
            sharded.seal();
        }
    }

    /// Gives back rows that are not to be sent now.
    pub(super) fn give_back(&self, route: &Route, rows: Vec<Row>, delay: Duration) {
        for row in rows {
            // Nobody listens only when the process is being torn down: the lease then expires.
            let _ = self.settled.send(Settled {
                outbox_id: row.outbox_id,
                lease_token: row.lease_token,
                rail: Arc::clone(&route.name),
                lane: Arc::from(row.participant_id.as_str()),
                latency: Duration::ZERO,
                age: Duration::ZERO,
                settlement: Settlement::Release { delay },
                batch: row.batch,
                trace: None,
                slot: route.take(1, row.batch),
            });
        }
    }

    fn dispatch_lane(&self, route: &Route, rows: Vec<Row>, terms: Terms) {
        let Some(first) = rows.first() else { return };
        // A row without a valid destination is refused below; it needs a breaker all the same.
        let destination = route.rail.destination(first).unwrap_or_else(|_| Arc::clone(&route.name));
        let permit = match route.breaker(&destination).permit() {
            Ok(permit) => permit,
            Err(wait) => return self.give_back(route, rows, wait),
        };
        let lane = Arc::new(self.lane(route, rows, permit.clone(), terms));
        screen(route, &lane, &destination, permit.is_probe());
        failpoint("validated");
        if lane.unreported().is_empty() {
            return;
        }
        self.remember(&lane);
        route.rail.deliver(lane);
        failpoint("handed_over");
    }

    fn lane(&self, route: &Route, rows: Vec<Row>, permit: Permit, terms: Terms) -> Lane {
        let (key, batch) = (key(&rows), rows.first().and_then(|row| row.batch));
        let lane_terms = LaneTerms {
            settled: self.settled.clone(),
            rail: Arc::clone(&route.name),
            key,
            ordered: route.ordered,
            halts: route.halts,
            lease: Lease::new(terms.asked_at, terms.length),
            permit,
            taken: route.take(rows.len(), batch),
            stopping: Arc::clone(&self.stopping),
        };
        let lane = Lane::new(rows, lane_terms);
        if self.traced { lane.traced() } else { lane }
    }
}

/// Reports what is known before anything is sent: invalid rows are refused, and what may not go
/// along (another destination, behind a probe, behind a stop) is given back.
fn screen(route: &Route, lane: &Lane, destination: &Arc<str>, probe: bool) {
    let mut closed = false;
    for (index, row) in lane.rows().iter().enumerate() {
        if closed {
            lane.withhold(index, Outcome::NotSent);
            continue;
        }
        match judge(route, row) {
            Ok(own) if own == *destination => closed = probe,
            Ok(_) => {
                lane.withhold(index, Outcome::NotSent);
                closed = true;
            }
            Err(failure) => {
                let refused = Outcome::Refused(failure);
                closed = !lane.goes_on_after(&refused);
                lane.withhold(index, refused);
            }
        }
    }
}

fn judge(route: &Route, row: &Row) -> Result<Arc<str>, crate::delivery::Failure> {
    if let Some(validator) = &route.validator {
        validator.check(&row.payload)?;
    }
    route.rail.destination(row)
}

/// The rows of one lane stand together in a claim, and have their turn together. A participant may have
/// several lanes on a rail: rows from when it had no order have one each. Without order every row
/// is on its own.
fn lanes(rows: Vec<Row>, ordered: bool) -> Vec<Vec<Row>> {
    let mut lanes: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match lanes.last_mut() {
            Some(lane) if ordered && lane[0].turn_id == row.turn_id => lane.push(row),
            _ => lanes.push(vec![row]),
        }
    }
    lanes
}

fn key(rows: &[Row]) -> Arc<str> {
    rows.first().map_or_else(|| Arc::from(""), |row| Arc::from(row.participant_id.as_str()))
}
