//! The relay: wakes, claims, hands lanes to rails, writes down what became of them, repairs.
//!
//! A row's way: [`wake`] → [`claims`] → [`dispatch`] (validation, breaker, lane) → a rail →
//! [`completer`]. No database transaction is open while a rail is called. All queues are bounded by
//! the number of rows under way, which each rail limits.

mod claims;
mod completer;
mod dispatch;
mod housekeeping;
mod ledger;
mod quarantine;
mod renewal;
mod route;
mod shards;
mod wake;
mod worker_id;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use crate::admin::health::Health;
use crate::config::{Config, ConfigError, Secret};
use crate::store::{StoreError, WorkerStore};
use claims::Claims;
use completer::Completer;
use dispatch::Dispatcher;
use housekeeping::{Housekeeping, Keeping};
use renewal::Renewal;
use route::Route;
use shards::Shards;
use wake::Wake;

pub use route::policies;

/// An outcome is worth writing for as long as its lease can last, renewals included.
const LEASES_OF_PATIENCE: u32 = 2;

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
    #[error("no rail is configured: add one as [rails.NAME] with kind = \"kafka\" or \"http\"")]
    NoRails,
    #[error(
        "--tenant cannot be used with rails.{0}: its delivery is exactly_once, and a worker that owns a shard delivers all of it"
    )]
    TenantOfShards(String),
    #[error("{0}")]
    Refused(String),
    #[error("shutting down took too long: {0} rows were still under way, their leases will expire")]
    TookTooLong(usize),
}

/// One worker.
pub struct Relay {
    claims: Arc<Claims>,
    writing: JoinHandle<()>,
    background: JoinSet<()>,
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
    ) -> Result<Self, RelayError> {
        let routes = route::routes(config, &scope.rails)?;
        if routes.is_empty() {
            return Err(RelayError::NoRails);
        }
        let sharded = |route: &&Arc<Route>| route.rail.sharded().is_some();
        if let (Some(_), Some(route)) = (scope.tenant_id, routes.iter().find(sharded)) {
            return Err(RelayError::TenantOfShards(route.name.to_string()));
        }
        let url = config.database.required_url()?;
        let store = WorkerStore::new(url, config.relay.lease())?;
        let policies = policies(config);
        store.check_policies(&policies).await?;
        let worker_id: Arc<str> = worker_id::new().into();
        tracing::info!(%worker_id, rails = ?routes.iter().map(|route| &*route.name).collect::<Vec<_>>(), "ready");

        let (settled, outcomes) = mpsc::unbounded_channel();
        let dispatcher = Arc::new(Dispatcher::new(settled));
        let wake = Arc::new(Wake::new(Arc::clone(&health)));
        let completer = Arc::new(Completer {
            store: store.clone(),
            worker_id: Arc::clone(&worker_id),
            patience: config.relay.lease() * LEASES_OF_PATIENCE,
            wake: Arc::clone(&wake),
        });
        let (refused, refusals) = watch::channel(None);
        let mut background = JoinSet::new();
        let renewal = Renewal {
            store: store.clone(),
            worker_id: Arc::clone(&worker_id),
            dispatcher: Arc::clone(&dispatcher),
            lease: config.relay.lease(),
        };
        background.spawn(renewal.run());
        for route in routes.iter().filter(sharded) {
            let shards = Shards {
                store: store.clone(),
                worker_id: Arc::clone(&worker_id),
                route: Arc::clone(route),
                lease: config.relay.lease(),
                wake: Arc::clone(&wake),
            };
            background.spawn(shards.run());
        }
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
        let writing = completer.start(outcomes);
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
        mut self,
        stop: impl Future<Output = ()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), RelayError> {
        let claims = Arc::clone(&self.claims);
        let (ended, mut ending) = watch::channel(false);
        let claiming = tokio::spawn(async move {
            let _ended = EndedOnDrop(ended);
            claims.run().await;
        });
        let refusal = tokio::select! {
            () = stop => None,
            refused = self.refused.wait_for(Option::is_some) => {
                refused.ok().and_then(|refused| refused.clone())
            }
            _ = ending.wait_for(|ended| *ended) => Some("the claim loop ended by itself".to_owned()),
            _ = &mut self.writing => Some("a writer of outcomes ended by itself".to_owned()),
        };
        self.claims.dispatcher.stopping.store(true, Ordering::Relaxed);
        self.claims.wake.now();
        let finished = self.finish(claiming, hurry).await;
        match refusal {
            Some(refusal) => Err(RelayError::Refused(refusal)),
            None => finished,
        }
    }

    /// Delivers what is due, and ends.
    pub async fn drain(
        self,
        stop: impl Future<Output = ()>,
        told: impl Fn(usize) + Send + 'static,
    ) -> Result<(), RelayError> {
        let claims = Arc::clone(&self.claims);
        let mut refused = self.refused.clone();
        let (result, mut drained) = watch::channel(None);
        let claiming = tokio::spawn(async move {
            let outcome = claims.drain(told).await.map_err(|error| error.to_string());
            result.send_replace(Some(outcome));
        });
        let drained = tokio::select! {
            () = stop => Ok(()),
            refusal = refused.wait_for(Option::is_some) => {
                Err(refusal.ok().and_then(|refusal| refusal.clone()).unwrap_or_default())
            }
            outcome = drained.wait_for(Option::is_some) => match outcome.as_deref() {
                Ok(Some(outcome)) => outcome.clone(),
                _ => Err("the claim loop ended by itself".to_owned()),
            },
        };
        self.claims.dispatcher.stopping.store(true, Ordering::Relaxed);
        self.finish(claiming, std::future::pending()).await?;
        drained.map_err(RelayError::Refused)
    }

    /// Stops claiming, waits for what is under way, writes every outcome, releases the rest.
    async fn finish(
        mut self,
        claiming: JoinHandle<()>,
        hurry: impl Future<Output = ()>,
    ) -> Result<(), RelayError> {
        let routes = self.claims.routes.clone();
        let everything = async {
            let _ = claiming.await;
            // Leases are renewed until nothing is under way.
            self.claims.await_everything().await;
            self.background.shutdown().await;
            // Whoever is there takes over our shards at once.
            for route in routes.iter().filter(|route| route.rail.sharded().is_some()) {
                route.rail.abandon().await;
            }
            self.keeping.end().await;
            // The last senders go with the lanes: then the writers end.
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
        for route in &routes {
            route.rail.abandon().await;
        }
        match tokio::time::timeout(Duration::from_secs(5), everything).await {
            Ok(()) => Ok(()),
            Err(_) => Err(RelayError::TookTooLong(under_way(&routes))),
        }
    }
}

/// Says that a task is over, also when it panicked.
struct EndedOnDrop(watch::Sender<bool>);

impl Drop for EndedOnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

fn under_way(routes: &[Arc<Route>]) -> usize {
    routes.iter().map(|route| route.slots.taken()).sum()
}
