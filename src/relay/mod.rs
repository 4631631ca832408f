//! The relay: wakes, claims, hands lanes to rails, writes down what became of them, repairs.
//!
//! A row's way: [`wake`] → [`claims`] → [`dispatch`] (validation, breaker, lane) → a rail →
//! [`completer`]. No database transaction is open while a rail is called. All queues are bounded by
//! the number of rows under way, which each rail limits.

mod appetite;
mod batches;
mod claims;
mod completer;
mod dispatch;
mod housekeeping;
mod ledger;
mod quarantine;
mod renewal;
mod route;
mod shards;
mod trouble;
mod waiting;
mod wake;
mod worker_id;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use thiserror::Error;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use crate::admin::health::Health;
use crate::admin::spans::Spans;
use crate::config::{Config, ConfigError, Secret};
use crate::store::migrate::{MigrateError, SchemaVersion};
use crate::store::{StoreError, WorkerStore};
use claims::Claims;
use completer::Completer;
use dispatch::Dispatcher;
use housekeeping::{Housekeeping, Keeping};
use renewal::Renewal;
use route::Route;
use shards::{Sharding, Shards};
use wake::Wake;

pub use route::policies;

/// An outcome is worth writing for as long as its lease can last, renewals included.
const LEASES_OF_PATIENCE: u32 = 2;
/// How long the end may take when there is no time left.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// What a relay is asked to do.
#[derive(Debug, Default)]
pub struct Scope {
    /// Only rows of this tenant.
    pub tenant_id: Option<Uuid>,
    /// Only these rails; all when it is empty.
    pub rails: Vec<String>,
}

#[derive(Debug, Error)]
pub enum RelayError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Schema(#[from] MigrateError),
    #[error("no rail is configured: add one as [rails.NAME] with kind = \"kafka\" or \"http\"")]
    NoRails,
    #[error(
        "--tenant cannot be used with rails.{0}: its delivery is exactly_once, and a worker that owns a shard delivers all of it"
    )]
    TenantOfShards(String),
    #[error("{0}")]
    Refused(String),
    #[error(
        "a destination of rail {0:?} is unavailable: what is due for it was not delivered and still waits"
    )]
    Unavailable(String),
    #[error(
        "a shard of rail {0:?} is halted: what is due in it waits until an operator decides, as docs/exactly-once.md says"
    )]
    ShardHalted(String),
    #[error("shutting down took too long: {0} rows were still under way, their leases will expire")]
    TookTooLong(usize),
}

/// Finds out what is wrong with the configuration of the rails. Nothing is sent.
pub fn check(config: &Config) -> Result<(), ConfigError> {
    route::routes(config, &[]).map(|_| ())
}

/// One worker.
pub struct Relay {
    claims: Arc<Claims>,
    writing: JoinHandle<()>,
    background: JoinSet<()>,
    shards: Sharding,
    keeping: Keeping,
    refused: watch::Receiver<Option<String>>,
    shutdown: Duration,
}

impl Relay {
    /// Checks everything that can be wrong, and starts all but the claims.
    pub async fn start(
        config: &Config,
        scope: Scope,
        health: Arc<Health>,
        spans: Option<Spans>,
    ) -> Result<Self, RelayError> {
        let routes = chosen_routes(config, &scope)?;
        let (store, policies) = ready_store(config).await?;
        let worker_id: Arc<str> = worker_id::new().into();
        tracing::info!(%worker_id, rails = ?routes.iter().map(|route| &*route.name).collect::<Vec<_>>(), "ready");

        let traced = spans.is_some();
        let wake = Arc::new(Wake::new(Arc::clone(&health)));
        let completer = Completer {
            store: store.clone(),
            worker_id: Arc::clone(&worker_id),
            patience: config.relay.lease() * LEASES_OF_PATIENCE,
            routes: routes.clone(),
            wake: Arc::clone(&wake),
            spans,
        };
        let (settled, writing) = completer.start();
        let dispatcher = Arc::new(Dispatcher::new(settled, traced));
        let (refused, refusals) = watch::channel(None);
        let mut background = JoinSet::new();
        let renewal = Renewal {
            store: store.clone(),
            worker_id: Arc::clone(&worker_id),
            dispatcher: Arc::clone(&dispatcher),
            lease: config.relay.lease(),
        };
        background.spawn(renewal.run());
        let shards = Sharding::start(routes.iter().filter(is_sharded).map(|route| Shards {
            store: store.clone(),
            worker_id: Arc::clone(&worker_id),
            route: Arc::clone(route),
            lease: config.relay.lease(),
            wake: Arc::clone(&wake),
        }));
        let housekeeping = Housekeeping {
            store: store.clone(),
            worker_id: Arc::clone(&worker_id),
            tenant_id: scope.tenant_id,
            routes: routes.clone(),
            policies,
            wake: Arc::clone(&wake),
            health: Arc::clone(&health),
            refused,
        };
        let keeping = housekeeping.start();
        let claims = Claims {
            store,
            worker_id,
            config: config.relay.clone(),
            tenant_id: scope.tenant_id,
            routes,
            dispatcher,
            wake,
            health,
        };
        Ok(Self {
            claims: Arc::new(claims),
            writing,
            background,
            shards,
            keeping,
            refused: refusals,
            shutdown: Duration::from_secs(config.relay.shutdown_seconds),
        })
    }

    /// Listens for new work, on a connection that does not go through a pooler.
    pub fn listen(&mut self, url: &Secret) {
        self.background.spawn(wake::hear(url.clone(), Arc::clone(&self.claims.wake)));
        self.background.spawn(wake::hold_key(url.clone(), Arc::clone(&self.claims.wake)));
    }

    /// Delivers until `stop` says so; `hurry` ends the wait for what is under way.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), RelayError> {
        let claims = Arc::clone(&self.claims);
        let claiming = async move {
            claims.run().await;
            Ok(())
        };
        self.supervise(claiming, stop, hurry).await
    }

    /// Delivers what is due, and ends.
    pub async fn drain(
        self,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
        told: impl Fn(usize) + Send + Sync + 'static,
    ) -> Result<(), RelayError> {
        let claims = Arc::clone(&self.claims);
        let claiming = async move { claims.drain(told).await };
        self.supervise(claiming, stop, hurry).await
    }

    /// Claims until that ends by itself, somebody stops it, or it must not go on.
    async fn supervise(
        mut self,
        claiming: impl Future<Output = Result<(), RelayError>> + Send + 'static,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), RelayError> {
        let mut claiming = tokio::spawn(claiming);
        let refused = |why: &str| Err(RelayError::Refused(why.to_owned()));
        let result = tokio::select! {
            () = stop => Ok(()),
            Ok(why) = self.refused.wait_for(Option::is_some) => {
                refused(why.as_deref().unwrap_or_default())
            }
            ended = &mut claiming => ended.unwrap_or_else(|_| refused("the claim loop died")),
            // To send on without ever writing down what became of it would be worse.
            _ = &mut self.writing => refused("the writer of outcomes ended by itself"),
        };
        self.claims.dispatcher.stopping.store(true, Ordering::Relaxed);
        self.claims.wake.now();
        let finished = self.finish(claiming, hurry).await;
        result.and(finished)
    }

    /// Stops claiming, waits for what is under way, writes every outcome, releases the rest.
    async fn finish(
        mut self,
        claiming: JoinHandle<Result<(), RelayError>>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), RelayError> {
        let routes = self.claims.routes.clone();
        let everything = async {
            if !claiming.is_finished() {
                let _ = claiming.await;
            }
            // Leases are renewed until nothing is under way.
            self.claims.await_everything().await;
            self.background.shutdown().await;
            self.shards.end().await;
            // Whoever is there takes over our shards at once.
            for route in routes.iter().filter(is_sharded) {
                route.rail.abandon().await;
            }
            self.keeping.end().await;
            // The last senders go with the lanes: then the writer ends.
            drop(self.claims);
            if !self.writing.is_finished() {
                let _ = self.writing.await;
            }
        };
        tokio::pin!(everything);
        tokio::select! {
            () = &mut everything => return Ok(()),
            () = hurry => {}
            () = tokio::time::sleep(self.shutdown) => {}
        }
        tracing::warn!("shutting down takes too long: what is under way is given up");
        // Who waits for a broker ends when that is over, and that may be too long as well.
        let abandoned = join_all(routes.iter().map(|route| route.rail.abandon()));
        let ended = async { tokio::join!(abandoned, everything) };
        match tokio::time::timeout(LAST_WAIT, ended).await {
            Ok(_) => Ok(()),
            Err(_) => Err(RelayError::TookTooLong(under_way(&routes))),
        }
    }
}

fn is_sharded(route: &&Arc<Route>) -> bool {
    route.rail.sharded().is_some()
}

/// The rails that are asked for.
fn chosen_routes(config: &Config, scope: &Scope) -> Result<Vec<Arc<Route>>, RelayError> {
    let routes = route::routes(config, &scope.rails)?;
    if routes.is_empty() {
        return Err(RelayError::NoRails);
    }
    match (scope.tenant_id, routes.iter().find(is_sharded)) {
        (Some(_), Some(route)) => Err(RelayError::TenantOfShards(route.name.to_string())),
        _ => Ok(routes),
    }
}

/// The database, if its functions and the policies in force are ours.
async fn ready_store(config: &Config) -> Result<(WorkerStore, serde_json::Value), RelayError> {
    let store = WorkerStore::new(config.database.required_url()?, config.relay.lease())?;
    if let Some(other) = SchemaVersion::check_for_worker(store.schema_version().await)? {
        tracing::warn!("the outbox is that of {other}, which this binary is not");
    }
    let policies = policies(config);
    store.check_policies(&policies).await?;
    Ok((store, policies))
}

fn under_way(routes: &[Arc<Route>]) -> usize {
    routes.iter().map(|route| route.slots.taken()).sum()
}
