//! A rail with everything the relay knows about it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::appetite::Appetite;
use super::batches::Batches;
use crate::config::{Config, ConfigError, OnFailed, Ordering, RailConfig};
use crate::delivery::{
    Batch, Breaker, BreakerState, DEAD_LETTERS, FreeShard, Row, Slots, Taken, Tenure,
};
use crate::rails::{self, Rail, Sharded};
use crate::validation::Validator;

/// A rail, its policy, and what is under way on it.
pub(super) struct Route {
    pub(super) name: Arc<str>,
    pub(super) rail: Arc<dyn Rail>,
    /// Dead letters are carried as they are.
    pub(super) validator: Option<Validator>,
    pub(super) ordered: bool,
    pub(super) halts: bool,
    /// How many rows of one lane a claim takes at most.
    lane_rows: i32,
    pub(super) appetite: Appetite,
    pub(super) slots: Arc<Slots>,
    /// The same, by shard, on a rail that delivers in batches.
    shard_slots: Mutex<HashMap<i16, Arc<Slots>>>,
    pub(super) batches: Arc<Batches>,
    /// Shards that another worker is to have: no claim is for them any more.
    leaving: Mutex<HashSet<Tenure>>,
    /// Held by a claim from when it looks for free shards until its rows are with the rail.
    pub(super) claiming: tokio::sync::Mutex<()>,
    /// Whether nothing was claimed at the last look, because its destination was down.
    shut: AtomicBool,
    breakers: Mutex<HashMap<Arc<str>, Arc<Breaker>>>,
}

impl Route {
    pub(super) fn new(
        name: &str,
        rail: Arc<dyn Rail>,
        validator: Option<Validator>,
        halts: bool,
    ) -> Self {
        Self {
            name: name.into(),
            lane_rows: rail.lane_rows(halts),
            rail,
            validator,
            ordered: true,
            halts,
            appetite: Appetite::default(),
            slots: Arc::new(Slots::default()),
            shard_slots: Mutex::new(HashMap::new()),
            batches: Arc::default(),
            leaving: Mutex::default(),
            claiming: tokio::sync::Mutex::default(),
            shut: AtomicBool::new(false),
            breakers: Mutex::new(HashMap::new()),
        }
    }

    fn from_config(name: &str, config: &RailConfig) -> Result<Self, ConfigError> {
        let rail = rails::open(name, config)?;
        let validator = Validator::load(name, config)?;
        let halts = config.on_failed() == OnFailed::Halt;
        let ordered = config.ordering() == Ordering::Strict;
        Ok(Self { ordered, ..Self::new(name, rail, Some(validator), halts) })
    }

    /// The breaker of a destination. Their number is bounded by the configured topics and tenants.
    pub(super) fn breaker(&self, destination: &Arc<str>) -> Arc<Breaker> {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Breaker::new(Arc::clone(destination)));
        Arc::clone(breakers.entry(Arc::clone(destination)).or_insert_with(made))
    }

    /// Counts rows of a claim as under way; those of a batch in its shard.
    pub(super) fn take(&self, rows: usize, batch: Option<Batch>) -> Taken {
        match batch {
            Some(batch) => self.slots_of(batch.shard).take(rows),
            None => self.slots.take(rows),
        }
    }

    /// The rows of a shard that are under way.
    pub(super) fn slots_of(&self, shard: i16) -> Arc<Slots> {
        let mut shards = self.shard_slots.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Slots::within(&self.slots));
        Arc::clone(shards.entry(shard).or_insert_with(made))
    }

    /// The shards that can take a batch now: ready, and with every row of the last one written down.
    pub(super) fn free_shards(&self) -> Option<Vec<FreeShard>> {
        let mut ready = self.rail.sharded()?.ready();
        ready.retain(|tenure| self.slots_of(tenure.shard).taken() == 0);
        let known = |tenure| Some(FreeShard { tenure, last_batch: self.batches.last(tenure)? });
        Some(ready.into_iter().filter_map(known).collect())
    }

    /// Those of them that we are to keep.
    pub(super) fn shards_to_claim(&self) -> Option<Vec<FreeShard>> {
        let mut free = self.free_shards()?;
        let leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        free.retain(|free| !leaving.contains(&free.tenure));
        Some(free)
    }

    /// Another worker is to have these shards, and only these.
    pub(super) fn leave(&self, tenures: impl Iterator<Item = Tenure>) {
        let mut leaving = self.leaving.lock().unwrap_or_else(PoisonError::into_inner);
        *leaving = tenures.collect();
    }

    /// Remembers the batches that have come with a claim.
    pub(super) fn claimed(&self, rows: &[Row]) {
        let mut of = rows.iter().filter_map(|row| row.batch).collect::<Vec<_>>();
        of.dedup();
        of.into_iter().for_each(|batch| self.batches.claimed(batch));
    }

    /// The database refuses what we say of a shard's batch: no claim for it until that is found out.
    pub(super) fn find_out(&self, shard: i16) {
        if let (Some(sharded), Some(tenure)) = (self.rail.sharded(), self.batches.tenure(shard)) {
            sharded.recover(tenure);
        }
    }

    /// How many of its destinations are known to be down, or on probation.
    pub(super) fn open_breakers(&self) -> usize {
        let breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        breakers.values().filter(|breaker| breaker.is_down()).count()
    }

    /// Whether it cannot deliver now, because a destination, or all of them, cannot be reached.
    pub(super) fn is_down(&self) -> bool {
        self.open_breakers() > 0 || self.abstains()
    }

    /// Whether its destination is back since nothing was claimed for it. Says so once.
    pub(super) fn is_open_again(&self) -> bool {
        self.shut.load(Relaxed) && !self.is_down() && self.shut.swap(false, Relaxed)
    }

    /// Whether it leaves its shards to other workers.
    pub(super) fn abstains(&self) -> bool {
        self.rail.sharded().is_some_and(Sharded::abstains)
    }

    /// How many rows of one lane a claim takes. While one of several destinations is down, each lane for
    /// it is claimed to find that out, so it had better be short.
    pub(super) fn lane_rows(&self) -> i32 {
        if self.open_breakers() > 0 { 1 } else { self.lane_rows }
    }

    /// How many rows may be claimed now, or for how long none.
    pub(super) fn room(&self, batch_size: usize) -> Result<usize, Duration> {
        let mut most = batch_size.min(self.appetite.most());
        if let Some(destination) = self.rail.only_destination() {
            let breaker = self.breaker(&destination);
            let wait = breaker.closed_for();
            self.shut.store(!wait.is_zero(), Relaxed);
            if !wait.is_zero() {
                return Err(wait);
            }
            if breaker.state() != BreakerState::Closed {
                // The probe: one row finds out.
                most = 1;
            }
        }
        let capacity = self.rail.capacity().min(self.appetite.capacity());
        let free = capacity.saturating_sub(self.slots.taken());
        // Many claims of a few rows each cost more than they bring.
        let worth_it = most.min(capacity.div_ceil(4));
        Ok(if free < worth_it { 0 } else { most.min(free) })
    }
}

/// Every rail of the configuration that `only` names (or all), and the one that carries dead letters.
pub(super) fn routes(config: &Config, only: &[String]) -> Result<Vec<Arc<Route>>, ConfigError> {
    let mut routes = Vec::new();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|rail| rail == name);
    for (name, rail) in config.rails.iter().filter(|(name, _)| wanted(name)) {
        routes.push(Arc::new(Route::from_config(name, rail)?));
    }
    if let Some(dlq) = config.dlq.as_ref().filter(|_| wanted(DEAD_LETTERS))
        && let (Some(carrier), Some(topic)) = (config.rails.get(&dlq.rail), &dlq.topic)
        && let Some(rail) = rails::open_for_dead_letters(carrier, topic)?
    {
        // The database never lets a dead letter fail: one that is refused is tried again, and what
        // is behind it must not be on its way.
        routes.push(Arc::new(Route::new(DEAD_LETTERS, rail, None, true)));
    }
    Ok(routes)
}

/// What this configuration says about policies, in the form that the database compares.
pub fn policies(config: &Config) -> serde_json::Value {
    // Without [dlq], somebody else carries dead letters to their topic.
    let dlq = match &config.dlq {
        Some(dlq) if dlq.is_ledger() => "ledger",
        _ => "topic",
    };
    let policies = config.rails.iter().map(|(name, rail)| {
        let policy = serde_json::json!({
            "ordering": rail.ordering(),
            "on_failed": rail.on_failed(),
            "delivery": rail.delivery(),
            "shards": rail.shards(),
            "dlq": dlq,
        });
        (name.clone(), policy)
    });
    serde_json::Value::Object(policies.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route() -> Route {
        let config = serde_json::json!({ "kind": "http", "url": "http://127.0.0.1:1/" });
        let config = RailConfig::Http(serde_json::from_value(config).unwrap());
        Route::from_config("bank", &config).unwrap()
    }

    #[test]
    fn a_destination_that_no_row_comes_for_does_not_count_as_down_for_ever() {
        let route = route();
        let usual = route.lane_rows();
        assert!(usual > 1);
        let breaker = route.breaker(&"bank:elsewhere".into());
        breaker.open_and_left_alone_for(Duration::ZERO);
        assert_eq!((route.open_breakers(), route.is_down(), route.lane_rows()), (1, true, 1));
        breaker.open_and_left_alone_for(Duration::from_secs(70));
        assert_eq!((route.open_breakers(), route.is_down(), route.lane_rows()), (0, false, usual));
    }
}
