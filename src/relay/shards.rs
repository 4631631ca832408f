//! Keeps the shards of a rail that delivers in batches.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::route::Route;
use super::wake::Wake;
use crate::admin::metrics;
use crate::delivery::{Denied, Evidence, Places, Reconciled, ShardKeeper, Stand, Tenure};
use crate::rails::Sharded;
use crate::store::{Holder, LeasedShard, StoreError, WorkerStore};

/// How often we say that our shards are ours, and look for free ones.
const EVERY: Duration = Duration::from_millis(500);
/// The SQLSTATEs of a shard that is not ours, and of evidence that cannot be recorded.
const SHARD_LOST: &str = "P7014";
const CONTRADICTION: &str = "P7017";

/// Leases shards, shares them out with the other workers, and gives them up.
pub(super) struct Shards {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    pub(super) route: Arc<Route>,
    pub(super) lease: Duration,
    pub(super) wake: Arc<Wake>,
}

impl Shards {
    pub(super) async fn run(self) {
        let Some(sharded) = self.route.rail.sharded() else { return };
        sharded.begin(Arc::new(Keeper {
            store: self.store.clone(),
            worker_id: Arc::clone(&self.worker_id),
            rail: Arc::clone(&self.route.name),
            wake: Arc::clone(&self.wake),
            runtime: Handle::current(),
        }));
        let seconds = i32::try_from(self.lease.as_secs()).unwrap_or(i32::MAX);
        let mut stranded = HashSet::new();
        loop {
            match self.store.lease_shards(&self.worker_id, &self.route.name, seconds).await {
                Ok(leased) => self.look_at(sharded, &leased, &mut stranded),
                // The leases run on, and the broker fences whoever is too late.
                Err(error) => {
                    tracing::warn!(%error, rail = %self.route.name, "shards could not be leased");
                }
            }
            tokio::time::sleep(EVERY).await;
        }
    }

    fn look_at(
        &self,
        sharded: &dyn Sharded,
        leased: &[LeasedShard],
        stranded: &mut HashSet<Tenure>,
    ) {
        let tenures: Vec<Tenure> = leased.iter().map(|shard| shard.tenure).collect();
        sharded.own(&tenures);
        metrics::owned_shards(&self.route.name, tenures.len());
        let before = std::mem::take(stranded);
        for shard in leased.iter().filter(|shard| self.is_idle(shard.tenure)) {
            if shard.under_way && shard.ready {
                // Seen twice, because a claim may be on its way to us.
                if before.contains(&shard.tenure) {
                    sharded.recover(shard.tenure);
                } else {
                    stranded.insert(shard.tenure);
                }
            } else if shard.leave && !shard.under_way {
                sharded.give_up(shard.tenure);
            }
        }
    }

    fn is_idle(&self, tenure: Tenure) -> bool {
        self.route.slots_of(tenure.shard).taken() == 0
    }
}

/// The database for the owner of shards. Its calls come from threads of the rail.
struct Keeper {
    store: WorkerStore,
    worker_id: Arc<str>,
    rail: Arc<str>,
    wake: Arc<Wake>,
    runtime: Handle,
}

impl Keeper {
    fn holder(&self, tenure: Tenure) -> Holder<'_> {
        Holder { worker_id: &self.worker_id, rail_type: &self.rail, tenure }
    }

    fn ask<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, Denied> {
        self.runtime.block_on(call).map_err(|error| {
            match error.server().map(|server| server.code.as_str()) {
                Some(SHARD_LOST) => Denied::Lost,
                Some(CONTRADICTION) => Denied::Contradiction(error.to_string()),
                _ => Denied::Away(error.to_string()),
            }
        })
    }
}

impl ShardKeeper for Keeper {
    fn stand(&self, tenure: Tenure) -> Result<Stand, Denied> {
        self.ask(self.store.shard_stand(self.holder(tenure)))
    }

    fn note(&self, tenure: Tenure, places: &Places) -> Result<(), Denied> {
        self.ask(self.store.note_places(self.holder(tenure), places))
    }

    fn reconcile(&self, tenure: Tenure, evidence: &Evidence) -> Result<Reconciled, Denied> {
        self.ask(self.store.reconcile_shard(self.holder(tenure), evidence))
    }

    fn halt(&self, tenure: Tenure, reason: &str) -> Result<(), Denied> {
        self.ask(self.store.halt_shard(self.holder(tenure), reason))
    }

    fn release(&self, tenure: Tenure) -> Result<(), Denied> {
        self.ask(self.store.release_shard(self.holder(tenure)))
    }

    fn changed(&self) {
        self.wake.now();
    }
}
