//! What every worker does besides delivering: says that it is there, repair, upkeep, a look at the
//! policies, and gauges where somebody can see them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior};
use uuid::Uuid;

use super::route::Route;
use super::trouble::Troubles;
use super::waiting::{self, RailSign};
use super::wake::Wake;
use crate::admin::health::Health;
use crate::admin::metrics;
use crate::failpoint::failpoint;
use crate::store::{StoreError, UpkeepRow, WorkerStore};

/// Often, so that we and not a claim find an expired lease: only we log and count what is repaired.
const REPAIR_EVERY: Duration = Duration::from_secs(1);
const UPKEEP_EVERY: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// Lanes repaired in one call; called again until nothing is left.
const REPAIR_BATCH: i32 = 200;
/// Upkeep asks to be called again at most so often in a row.
const UPKEEP_ROUNDS: usize = 50;
/// A database that is away does not hold up the end for longer.
const GOODBYE_PATIENCE: Duration = Duration::from_secs(1);
/// The SQLSTATE by which the database refuses our policies.
const OTHER_POLICIES: &str = "P7012";

pub(super) struct Housekeeping {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    pub(super) tenant_id: Option<Uuid>,
    pub(super) routes: Vec<Arc<Route>>,
    pub(super) policies: serde_json::Value,
    pub(super) wake: Arc<Wake>,
    pub(super) health: Arc<Health>,
    /// Set to what is wrong when this worker must stop.
    pub(super) refused: watch::Sender<Option<String>>,
}

/// Housekeeping that is under way.
pub(super) struct Keeping {
    /// Gone when it is to end.
    stop: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Keeping {
    /// Ends it, and says goodbye to the database. Between two calls: one that is cut off may be heard
    /// after the goodbye.
    pub(super) async fn end(self) {
        drop(self.stop);
        let abort = self.task.abort_handle();
        if tokio::time::timeout(GOODBYE_PATIENCE, self.task).await.is_err() {
            abort.abort();
        }
    }
}

impl Housekeeping {
    pub(super) fn start(self) -> Keeping {
        let (stop, stopped) = watch::channel(());
        Keeping { stop, task: tokio::spawn(self.run(stopped)) }
    }

    async fn run(self, mut stopped: watch::Receiver<()>) {
        self.keep(&mut stopped).await;
        if let Err(error) = self.store.forget_worker(&self.worker_id).await {
            tracing::info!(%error, "could not say goodbye: this worker is shown until it is forgotten");
        }
    }

    async fn keep(&self, stopped: &mut watch::Receiver<()>) {
        let [mut repair, mut upkeep, mut look] =
            [REPAIR_EVERY, UPKEEP_EVERY, LOOK_EVERY].map(every);
        let mut troubles = Troubles::default();
        loop {
            let (chore, result) = tokio::select! {
                _ = stopped.changed() => return,
                _ = repair.tick() => ("repair", self.repair().await),
                _ = upkeep.tick() => ("upkeep", self.upkeep().await),
                _ = look.tick() => ("look", self.look().await),
            };
            let Err(error) = result else {
                troubles.is_over(chore);
                continue;
            };
            if troubles.is_news(chore, &error) {
                tracing::warn!(%error, chore, "housekeeping fails; trying again until it works");
            } else {
                tracing::debug!(%error, chore, "housekeeping fails; trying again until it works");
            }
            // A loop that sleeps for long would not notice that the database is away, nor say so.
            self.wake.now();
        }
    }

    /// Until nothing is left to repair: a dead worker's rows must not wait for the next round.
    async fn repair(&self) -> Result<(), StoreError> {
        loop {
            let repaired = self.store.repair(&self.worker_id, REPAIR_BATCH).await?;
            if repaired.is_empty() {
                return Ok(());
            }
            failpoint("repaired");
            metrics::repaired(repaired.len());
            for row in &repaired {
                tracing::warn!(outbox_id = %row.outbox_id, participant_id = row.participant_id, rail = row.rail_type,
                    lost_by = row.expired_worker_id, lane_paused = row.lane_paused,
                    "repaired an expired lease: this row may have been sent");
            }
            // They are due in a second.
            self.wake.at(Instant::now() + Duration::from_secs(1));
        }
    }

    async fn upkeep(&self) -> Result<(), StoreError> {
        for _ in 0..UPKEEP_ROUNDS {
            let done = self.store.upkeep().await?;
            for row in done.iter().filter(|row| !row.asks_for_more()) {
                tracing::info!(
                    action = row.action,
                    partition = row.partition_name,
                    detail = row.detail,
                    "upkeep"
                );
            }
            if !done.iter().any(UpkeepRow::asks_for_more) {
                break;
            }
        }
        Ok(())
    }

    async fn look(&self) -> Result<(), StoreError> {
        let rails: Vec<RailSign<'_>> = self.routes.iter().map(|route| sign(route)).collect();
        for rail in &rails {
            metrics::rail(rail.name, rail.in_flight, rail.open_breakers);
        }
        self.check_policies().await?;
        let names: Vec<&str> = rails.iter().map(|rail| rail.name).collect();
        self.say_that_we_are_here().await?;
        let waiting = self.store.waiting_rails(&names, self.tenant_id).await?;
        self.health.waiting(waiting::reason(&rails, &waiting));
        if waiting.iter().any(|rail| rail.is_due) {
            // Nobody notifies of rows that were repaired by a claim, or whose worker is gone.
            self.wake.now();
        }
        // A drain shows nobody what it would cost to count.
        if metrics::are_shown()
            && let Some(sample) = self.store.sample_gauges().await?
        {
            metrics::sampled(&sample);
        }
        Ok(())
    }

    /// Nobody is to count on us for a rail on which we leave everything to others.
    async fn say_that_we_are_here(&self) -> Result<(), StoreError> {
        let runs = self.routes.iter().filter(|route| !route.abstains());
        let rails: Vec<&str> = runs.map(|route| &*route.name).collect();
        if rails.is_empty() {
            return self.store.forget_worker(&self.worker_id).await;
        }
        self.store.note_worker(&self.worker_id, &rails, self.tenant_id).await
    }

    async fn check_policies(&self) -> Result<(), StoreError> {
        match self.store.check_policies(&self.policies).await {
            Err(error) if error.server().is_some_and(|error| error.code == OTHER_POLICIES) => {
                self.refused.send_replace(Some(error.to_string()));
                Ok(())
            }
            result => result,
        }
    }
}

fn sign(route: &Route) -> RailSign<'_> {
    let open_breakers = route.open_breakers().max(usize::from(route.abstains()));
    let in_flight = route.slots.taken();
    RailSign { name: &route.name, open_breakers, in_flight }
}

/// What was missed while the database, or we, were away is not made up for.
fn every(period: Duration) -> Interval {
    let mut interval = tokio::time::interval(period);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}
