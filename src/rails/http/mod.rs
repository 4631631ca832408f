//! Delivers by HTTP: one POST for each row.
//!
//! A lane has one row under way; lanes go in parallel, as many as `concurrency` allows and as fast
//! as `requests_per_second` allows. Only a complete answer settles a row. Without one the row is in
//! doubt, unless there was not even a connection.

mod answer;
mod client;
mod courier;
mod examination;
mod headers;
mod own_headers;
mod pace;
mod pointer;
mod retry_after;
mod settings;
mod signature;
mod status;
mod transport;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use self::courier::Courier;
pub use self::examination::{Obstacle, Visit, visit, visit_address};
use self::pace::Gate;
use crate::config::{ConfigError, HttpRailConfig};
use crate::delivery::{Failure, Lane, Row};
use crate::rails::Rail;

/// For each row under way, one more that is ready to follow. More would only let leases run while
/// their lanes stand in line.
const READY_FOR_EACH_SLOT: usize = 2;
/// One row of a lane goes after the other, so a lane with more would only keep the others from their turn.
const LANE_ROWS: i32 = 2;

/// A rail that sends its rows to one URL.
pub struct HttpRail {
    name: String,
    destination: Arc<str>,
    capacity: usize,
    courier: Arc<Courier>,
    /// One for each lane under way.
    tasks: Mutex<JoinSet<()>>,
    abandoned: watch::Sender<bool>,
}

impl HttpRail {
    /// Finds everything that is wrong with the configuration. `name` is the rail's own.
    pub fn new(name: &str, config: &HttpRailConfig) -> Result<Self, ConfigError> {
        let key = format!("rails.{name}");
        let url = settings::url(&key, config)?;
        let courier = Courier {
            client: client::build(&key, &url, config)?,
            headers: settings::header_plan(&key, config)?,
            judge: settings::judge(&key, config)?,
            gate: Gate::new(config.concurrency, config.requests_per_second),
            timeout: Duration::from_secs(config.timeout_seconds),
            idempotency_ttl: config.idempotency_ttl_seconds.map(Duration::from_secs),
            url: url.clone(),
        };
        Ok(Self {
            name: name.to_owned(),
            destination: settings::destination(&url).into(),
            capacity: config.concurrency.saturating_mul(READY_FOR_EACH_SLOT),
            courier: Arc::new(courier),
            tasks: Mutex::new(JoinSet::new()),
            abandoned: watch::Sender::new(false),
        })
    }
}

impl Rail for HttpRail {
    fn destination(&self, _: &Row) -> Result<Arc<str>, Failure> {
        Ok(Arc::clone(&self.destination))
    }

    fn only_destination(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.destination))
    }

    fn longest_send(&self) -> Duration {
        self.courier.longest_send()
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn lane_rows(&self, _halts: bool) -> i32 {
        LANE_ROWS
    }

    fn deliver(&self, lane: Arc<Lane>) {
        let (courier, abandoned) = (Arc::clone(&self.courier), self.abandoned.subscribe());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // What is finished is forgotten here, so that the set stays as small as what is under way.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move { courier.carry(lane, abandoned).await });
    }

    fn abandon(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.abandoned.send_replace(true);
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        Box::pin(async move {
            while tasks.try_join_next().is_some() {}
            if !tasks.is_empty() {
                tracing::warn!(
                    rail = self.name,
                    lanes = tasks.len(),
                    "gave up what was still under way"
                );
            }
            while tasks.join_next().await.is_some() {}
        })
    }
}

/// A key of this rail that is wrong, without its value.
fn wrong(rail: &str, key: &str, problem: impl Into<String>) -> ConfigError {
    ConfigError::Wrong { key: format!("{rail}.{key}"), problem: problem.into() }
}
