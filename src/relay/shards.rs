//! Keeps the shards of a rail that delivers in batches.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::batches::Batches;
use super::route::Route;
use super::wake::Wake;
use crate::admin::metrics;
use crate::delivery::{
    COMES_BACK_AFTER, Denied, Evidence, FreeShard, Places, Reconciled, ShardKeeper, Stand, Tenure,
};
use crate::rails::Sharded;
use crate::store::{Holder, LeasedShard, LeasedShards, StoreError, WorkerStore};

/// How often we say that our shards are ours, and look for free ones; sooner when somebody else's lease ends.
const EVERY: Duration = Duration::from_millis(500);
/// The SQLSTATEs of a shard that is not ours, of one that is elsewhere by now, and of evidence that cannot be
/// recorded.
const SHARD_LOST: &str = "P7014";
const SHARD_MOVED: &str = "P7019";
const CONTRADICTION: &str = "P7017";

/// Leases shards, shares them out with the other workers, and gives them up.
pub(super) struct Shards {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    pub(super) route: Arc<Route>,
    pub(super) lease: Duration,
    pub(super) wake: Arc<Wake>,
}

/// The shards of every rail that has some. Not to be aborted: the server would go on with a call, and take shards
/// for somebody who is not there any more.
pub(super) struct Sharding {
    tasks: JoinSet<()>,
    stop: watch::Sender<()>,
}

impl Sharding {
    pub(super) fn start(shards: impl Iterator<Item = Shards>) -> Self {
        let (stop, stopped) = watch::channel(());
        Self { tasks: shards.map(|shards| shards.run(stopped.clone())).collect(), stop }
    }

    /// Leases nothing any more.
    pub(super) async fn end(self) {
        drop(self.stop);
        self.tasks.join_all().await;
    }
}

impl Shards {
    /// Until the sender of `stop` is gone.
    async fn run(self, mut stop: watch::Receiver<()>) {
        let Some(sharded) = self.route.rail.sharded() else { return };
        sharded.begin(Arc::new(Keeper {
            store: self.store.clone(),
            worker_id: Arc::clone(&self.worker_id),
            rail: Arc::clone(&self.route.name),
            batches: Arc::clone(&self.route.batches),
            wake: Arc::clone(&self.wake),
            runtime: Handle::current(),
        }));
        let seconds = i32::try_from(self.lease.as_secs()).unwrap_or(i32::MAX);
        let (mut stranded, mut owned) = (HashMap::new(), Vec::new());
        let mut pause = Duration::ZERO;
        while !is_over(&mut stop, pause).await {
            pause = EVERY;
            if sharded.abstains() {
                self.leave(sharded, std::mem::take(&mut owned)).await;
                continue;
            }
            match self.store.lease_shards(&self.worker_id, &self.route.name, seconds).await {
                Ok(LeasedShards { shards: leased, look_again }) => {
                    owned = leased.iter().map(|shard| shard.tenure).collect();
                    self.look_at(sharded, &leased, &mut stranded);
                    self.hand_over(sharded, &leased).await;
                    pause = look_again.map_or(EVERY, |soon| EVERY.min(soon));
                }
                // The leases run on, and the broker fences whoever is too late.
                Err(error) => {
                    tracing::warn!(%error, rail = %self.route.name, "shards could not be leased");
                }
            }
        }
    }

    /// Leaves our shards to others, without waiting for threads that still look for a broker.
    async fn leave(&self, sharded: &dyn Sharded, owned: Vec<Tenure>) {
        sharded.own(&[]);
        metrics::owned_shards(&self.route.name, 0);
        for tenure in owned {
            let holder = Holder { worker_id: &self.worker_id, rail_type: &self.route.name, tenure };
            if let Err(error) = self.store.release_shard(holder).await {
                tracing::info!(%error, shard = tenure.shard, "not given up: its lease will expire");
            }
        }
    }

    fn look_at(
        &self,
        sharded: &dyn Sharded,
        leased: &[LeasedShard],
        stranded: &mut HashMap<(Tenure, i64), Instant>,
    ) {
        let tenures: Vec<Tenure> = leased.iter().map(|shard| shard.tenure).collect();
        sharded.own(&tenures);
        metrics::owned_shards(&self.route.name, tenures.len());
        let before = std::mem::take(stranded);
        let free = self.route.free_shards().unwrap_or_default();
        for shard in leased.iter().filter(|shard| self.is_idle(shard.tenure)) {
            let known = free.iter().find(|free| free.tenure == shard.tenure);
            if known.is_some_and(|known| is_otherwise(shard, known)) {
                // Only if that lasts, because a claim may be on its way to us.
                let seen = (shard.tenure, shard.batch);
                let since = before.get(&seen).copied().unwrap_or_else(Instant::now);
                if since.elapsed() >= EVERY {
                    sharded.recover(shard.tenure);
                } else {
                    stranded.insert(seen, since);
                }
            }
        }
    }

    /// Gives up what another worker is to have, in two steps: no claim is for it any more, and then, when the one
    /// that may be on its way has come and has brought nothing of it, it goes. A batch that came after it had
    /// gone would have to be found out about by its next owner.
    async fn hand_over(&self, sharded: &dyn Sharded, leased: &[LeasedShard]) {
        let mut leaving = leased.iter().filter(|shard| shard.leave).collect::<Vec<_>>();
        self.route.leave(leaving.iter().map(|shard| shard.tenure));
        leaving.retain(|shard| !shard.under_way);
        if leaving.is_empty() {
            return;
        }
        let _none_on_its_way = self.route.claiming.lock().await;
        for shard in leaving.into_iter().filter(|shard| self.is_idle(shard.tenure)) {
            sharded.give_up(shard.tenure);
        }
    }

    fn is_idle(&self, tenure: Tenure) -> bool {
        self.route.slots_of(tenure.shard).taken() == 0
    }
}

/// Waits until the next look; says if there is none.
async fn is_over(stop: &mut watch::Receiver<()>, pause: Duration) -> bool {
    tokio::time::timeout(pause, stop.changed()).await.is_ok()
}

/// Whether the database tells another story of a shard than the one we know: it has a batch under way of
/// which nothing is here, or has forgotten one, or that we are ready.
fn is_otherwise(shard: &LeasedShard, known: &FreeShard) -> bool {
    shard.under_way || !shard.ready || shard.batch != known.last_batch
}

/// The database for the owner of shards. Its calls come from threads of the rail.
struct Keeper {
    store: WorkerStore,
    worker_id: Arc<str>,
    rail: Arc<str>,
    batches: Arc<Batches>,
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
                Some(SHARD_MOVED) => Denied::Moved(error.to_string()),
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

    fn keep_up(&self, tenure: Tenure, last_batch: i64, places: &Places) -> Result<(), Denied> {
        self.ask(self.store.renew_places(self.holder(tenure), last_batch, places))
    }

    fn reconcile(
        &self,
        tenure: Tenure,
        stand: &Stand,
        evidence: &Evidence,
    ) -> Result<Reconciled, Denied> {
        let decided = self.ask(self.store.reconcile_shard(self.holder(tenure), stand, evidence))?;
        self.batches.decided(tenure, decided.batch);
        if decided.requeued > 0 {
            self.wake.at(Instant::now() + COMES_BACK_AFTER);
        }
        Ok(decided)
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
