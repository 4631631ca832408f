//! Makes the leases of slow lanes longer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::dispatch::Dispatcher;
use super::trouble::Trouble;
use crate::admin::metrics;
use crate::delivery::Lane;
use crate::store::{Renewed, WorkerStore};

/// Lanes renewed in one call.
const AT_ONCE: usize = 1_000;

/// Renews what has less than two thirds of its lease left, several times before it could run out.
pub(super) struct Renewal {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) lease: Duration,
}

impl Renewal {
    pub(super) async fn run(self) {
        let mut trouble = Trouble::default();
        loop {
            tokio::time::sleep(self.lease / 6).await;
            self.renew(&mut trouble).await;
        }
    }

    async fn renew(&self, trouble: &mut Trouble) {
        let lanes: Vec<(Arc<Lane>, Uuid, Uuid)> = self
            .dispatcher
            .under_way()
            .into_iter()
            .filter(|lane| !lane.lease().is_lost() && lane.lease().time_left() < self.lease * 2 / 3)
            .filter_map(|lane| {
                // One row stands for its lane, because the database renews the lane as a whole: the
                // last, which nobody completes while we ask.
                let index = *lane.unreported().last()?;
                let row = &lane.rows()[index];
                let (outbox_id, token) = (row.outbox_id, row.lease_token);
                Some((lane, outbox_id, token))
            })
            .collect();
        for lanes in lanes.chunks(AT_ONCE) {
            self.renew_lanes(lanes, trouble).await;
        }
    }

    async fn renew_lanes(&self, lanes: &[(Arc<Lane>, Uuid, Uuid)], trouble: &mut Trouble) {
        let leases: Vec<(Uuid, Uuid)> = lanes.iter().map(|(_, id, token)| (*id, *token)).collect();
        let asked_at = Instant::now();
        let seconds = i32::try_from(self.lease.as_secs()).unwrap_or(i32::MAX);
        let renewed = match self.store.renew(&self.worker_id, &leases, seconds).await {
            Ok(renewed) => renewed,
            // The leases run on; a send that they do not cover is not begun.
            Err(error) => {
                if trouble.is_news(&error) {
                    tracing::warn!(%error, "leases could not be renewed");
                }
                return;
            }
        };
        trouble.is_over();
        for (lane, outbox_id, _) in lanes {
            match renewed.get(outbox_id) {
                Some(Renewed::Longer) => lane.lease().renew(asked_at, self.lease),
                None if !lane.unreported().is_empty() => {
                    lane.lease().lose();
                    metrics::lease_lost();
                    tracing::info!(%outbox_id, "CONCURRENCY_EVENT: the lease of this lane is lost, nothing more of it is sent");
                }
                Some(Renewed::Busy) | None => {}
            }
        }
    }
}
