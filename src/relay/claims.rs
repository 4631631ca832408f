//! The loop that looks for work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::RelayError;
use super::dispatch::{Dispatcher, Terms};
use super::quarantine;
use super::route::Route;
use super::trouble::Trouble;
use super::wake::Wake;
use crate::admin::health::Health;
use crate::admin::metrics;
use crate::config::RelayConfig;
use crate::delivery::{FreeShard, Places, Row};
use crate::failpoint::failpoint;
use crate::rails::Sharded;
use crate::store::{Claim, StoreError, WorkerStore};

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// How long a rail that is full is left alone, unless one of its rows is done before.
const FULL_PAUSE: Duration = Duration::from_millis(50);
/// How long a drain waits for a destination that is down, or for rows that it gave back, when nothing else is left to
/// deliver.
const DRAIN_PATIENCE: Duration = Duration::from_secs(10);
/// How long a drain waits for a shard beyond the lease that its last owner may have.
const SETTLING_PATIENCE: Duration = Duration::from_secs(60);
/// After so many rounds in a row that found rows and were woken before they ended there is load:
/// letting rows gather costs less than being woken for each.
const LIGHT_ROUNDS: u32 = 4;
/// What a lease must have left when a row that goes alone has been sent.
const RESERVE: Duration = Duration::from_secs(5);
/// However short the lease: what is given back beside a row that goes alone has to be written down first. The
/// rail itself looks whether the lease is long enough.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// Claims for each rail in turn, as much as it has room for.
pub(super) struct Claims {
    pub(super) store: WorkerStore,
    pub(super) worker_id: Arc<str>,
    pub(super) config: RelayConfig,
    pub(super) tenant_id: Option<Uuid>,
    pub(super) routes: Vec<Arc<Route>>,
    pub(super) dispatcher: Arc<Dispatcher>,
    pub(super) wake: Arc<Wake>,
    pub(super) health: Arc<Health>,
}

/// What one round over all rails found.
#[derive(Debug, Default)]
struct Round {
    rows: usize,
    /// Some claim brought as much as it asked for: there is more.
    more: bool,
    /// Some rail has no room.
    full: bool,
    /// Some claim was answered, whatever it found.
    answered: bool,
    /// Why some claim failed: the first of those that did.
    failed: Option<StoreError>,
}

/// What a claim for one rail brought.
enum Claimed {
    /// And whether there are more.
    Rows { count: usize, more: bool },
    /// No shard of ours can take a batch.
    Full,
    /// Nobody was asked: no shard of ours will take a batch by itself.
    Nothing,
}

impl Claims {
    /// Claims until told to stop.
    pub(super) async fn run(&self) {
        let mut pause = FIRST_PAUSE;
        let mut trouble = Trouble::default();
        let mut restless = 0;
        while !self.stopping() {
            self.health.beat();
            let round = self.round().await;
            match &round.failed {
                None if trouble.is_over() => {
                    tracing::info!("the database answers: claiming again");
                }
                None => {}
                Some(error) if trouble.is_news(error) => {
                    tracing::warn!(%error, "cannot claim; trying again until it works");
                }
                Some(error) => {
                    tracing::debug!(%error, "cannot claim; trying again until it works");
                }
            }
            // A rail whose claims fail is no reason for the others to wait.
            if round.failed.is_none() || round.answered {
                pause = FIRST_PAUSE;
                self.health.connected(true);
                restless = self.rest(&round, restless).await;
            } else {
                self.health.connected(false);
                self.health.beat();
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    /// Claims until nothing is due and nothing is under way. Fails when that is so only because a
    /// destination is down.
    pub(super) async fn drain(&self, told: impl Fn(usize)) -> Result<(), RelayError> {
        let (mut down_since, mut quiet_since, mut timeouts) = (None, Instant::now(), 0);
        while !self.stopping() {
            self.health.beat();
            // Looked at before the claim: what ends during it may have freed its lane, and what we gave back be due.
            let idle = self.idle();
            let comes_back = self.wake.something_comes_back();
            let round = self.round().await;
            told(round.rows);
            match round.failed {
                None => timeouts = 0,
                // The next asks for less. One that we gave up ourselves may have leased what nobody told us of.
                Some(error) if error.is_given_up_by_server() && timeouts < self.halvings() => {
                    timeouts += 1;
                    continue;
                }
                Some(error) => return Err(error.into()),
            }
            let down = self.routes.iter().find(|route| route.is_down());
            let since = *down_since.get_or_insert_with(Instant::now);
            match down {
                None => down_since = None,
                Some(route) if round.rows == 0 && idle && since.elapsed() > DRAIN_PATIENCE => {
                    return Err(RelayError::Unavailable(route.name.to_string()));
                }
                Some(_) => {}
            }
            if round.rows > 0 || !idle {
                quiet_since = Instant::now();
            }
            if round.rows == 0 {
                let waits = comes_back && quiet_since.elapsed() < DRAIN_PATIENCE;
                let quiet = idle && !waits && !round.full && down.is_none();
                if quiet && !self.shards_wait(quiet_since).await? {
                    return Ok(());
                }
                self.await_slot(FULL_PAUSE).await;
            }
        }
        Ok(())
    }

    /// How often a claim can ask for half of the one before.
    fn halvings(&self) -> u32 {
        u16::BITS - self.config.batch_size.leading_zeros()
    }

    /// Whether a shard that nobody else delivers has work, though no claim finds it: it is being taken up, or was given
    /// back a moment ago. Fails when that cannot change by itself, or takes too long.
    async fn shards_wait(&self, quiet_since: Instant) -> Result<bool, RelayError> {
        for route in self.routes.iter().filter(|route| route.rail.sharded().is_some()) {
            let left = self.store.shards_left(&self.worker_id, &route.name).await?;
            if left.waits && quiet_since.elapsed() > self.config.lease() + SETTLING_PATIENCE {
                return Err(RelayError::Unavailable(route.name.to_string()));
            }
            if left.waits {
                return Ok(true);
            }
            if left.halted {
                return Err(RelayError::ShardHalted(route.name.to_string()));
            }
        }
        Ok(false)
    }

    fn stopping(&self) -> bool {
        self.dispatcher.stopping.load(Ordering::Relaxed)
    }

    /// Whether nothing is under way.
    pub(super) fn idle(&self) -> bool {
        self.routes.iter().all(|route| route.slots.taken() == 0)
    }

    /// A claim for each rail. One that fails keeps no other rail from its own.
    async fn round(&self) -> Round {
        let mut round = Round::default();
        for route in &self.routes {
            if self.stopping() {
                break;
            }
            // A slow database is no reason to take the process for dead.
            self.health.beat();
            match route.room(self.config.batch_size.into()) {
                Ok(0) => round.full = true,
                Ok(room) => match self.claim(route, room).await {
                    Ok(Claimed::Rows { count, more }) => {
                        round.answered = true;
                        round.rows += count;
                        round.more |= more;
                    }
                    Ok(Claimed::Full) => round.full = true,
                    Ok(Claimed::Nothing) => {}
                    Err(error) => {
                        // Told now: the other rails may have to wait as long for nothing.
                        if !round.answered && error.server().is_none() {
                            self.health.connected(false);
                        }
                        round.failed.get_or_insert(error);
                    }
                },
                // Its breaker is open: nothing of it is claimed until then.
                Err(wait) => self.wake.at(Instant::now() + wait),
            }
        }
        round
    }

    async fn claim(&self, route: &Route, room: usize) -> Result<Claimed, StoreError> {
        if let Some(sharded) = route.rail.sharded() {
            return self.claim_batches(route, sharded, room).await;
        }
        let terms = self.terms();
        let rows = self.ask(route, room, None).await?;
        Ok(self.hand_out(route, rows, room, terms).await)
    }

    /// Gives the rows of a claim for `room` of them to the rail.
    async fn hand_out(&self, route: &Route, rows: Vec<Row>, room: usize, terms: Terms) -> Claimed {
        let (count, more) = (rows.len(), rows.len() == room);
        self.deliver(route, rows, terms).await;
        Claimed::Rows { count, more }
    }

    /// A claim for every shard that can take a batch.
    async fn claim_batches(
        &self,
        route: &Route,
        sharded: &dyn Sharded,
        room: usize,
    ) -> Result<Claimed, StoreError> {
        let _claiming = route.claiming.lock().await;
        let free = route.shards_to_claim().unwrap_or_default();
        if free.is_empty() {
            return Ok(if sharded.is_settling() { Claimed::Full } else { Claimed::Nothing });
        }
        let terms = self.terms();
        let rows = self.ask(route, room, Some((free, sharded.places()))).await?;
        route.claimed(&rows);
        Ok(self.hand_out(route, rows, room, terms).await)
    }

    /// The lease of a claim counts from before it is made.
    fn terms(&self) -> Terms {
        Terms { asked_at: Instant::now(), length: self.config.lease() }
    }

    async fn ask(
        &self,
        route: &Route,
        room: usize,
        shards: Option<(Vec<FreeShard>, Places)>,
    ) -> Result<Vec<Row>, StoreError> {
        let claim = Claim {
            rows: i32::try_from(room).unwrap_or(i32::MAX),
            worker_id: &self.worker_id,
            lease_seconds: self.config.lease_seconds.into(),
            rail_type: &route.name,
            tenant_id: self.tenant_id,
            lane_rows: route.lane_rows(),
            shards,
        };
        let rows = self.store.claim(&claim).await.inspect_err(|error| {
            if error.is_timeout() {
                route.appetite.ran_out_of_time(room);
            }
        })?;
        route.appetite.brought(&rows);
        if !rows.is_empty() {
            failpoint("claimed");
            metrics::claimed(rows.len());
        }
        Ok(rows)
    }

    async fn deliver(&self, route: &Route, rows: Vec<Row>, terms: Terms) {
        let (rows, suspects, behind) = quarantine::part(rows);
        self.dispatcher.give_back(route, behind, Duration::ZERO);
        if route.rail.sharded().is_some() {
            return self.deliver_batches(route, rows, suspects, terms);
        }
        let mut suspects = suspects.into_iter();
        let Some(suspect) = suspects.next() else {
            return self.dispatcher.dispatch(route, rows, terms);
        };
        // One at a time: the leases of the others would run out while they wait.
        self.dispatcher.give_back(route, suspects.collect(), Duration::from_secs(1));
        self.dispatcher.dispatch(route, rows, terms);
        self.send_alone(route, suspect, terms).await;
    }

    /// What is under way elsewhere may never end, and a batch shares nothing with it: a suspect is alone when it is its
    /// batch. The rest of that one is the next, the batches of other shards are as they were.
    fn deliver_batches(&self, route: &Route, rows: Vec<Row>, suspects: Vec<Row>, terms: Terms) {
        let mut alone: Vec<Row> = Vec::new();
        let mut back = Vec::new();
        for suspect in suspects {
            if alone.iter().any(|row| row.batch == suspect.batch) {
                back.push(suspect);
            } else {
                tell(route, &suspect);
                alone.push(suspect);
            }
        }
        let in_company = |row: &Row| !alone.iter().any(|suspect| suspect.batch == row.batch);
        let (mut rows, beside): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(in_company);
        back.extend(beside);
        self.dispatcher.give_back(route, back, Duration::ZERO);
        rows.append(&mut alone);
        self.dispatcher.dispatch(route, rows, terms);
    }

    /// A row that may be killing its workers goes when nothing else is under way, so that it takes
    /// nothing with it.
    async fn send_alone(&self, route: &Route, suspect: Row, terms: Terms) {
        tell(route, &suspect);
        let patience = terms.length.saturating_sub(route.rail.longest_send() + RESERVE);
        let patience = patience.max(LEAST_PATIENCE);
        if !self.await_idle(patience).await {
            return self.dispatcher.give_back(route, vec![suspect], Duration::from_secs(1));
        }
        self.dispatcher.dispatch(route, vec![suspect], terms);
        self.await_idle(terms.length).await;
    }

    async fn await_idle(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        while !self.idle() && Instant::now() < until {
            self.health.beat();
            self.await_slot(FULL_PAUSE).await;
        }
        self.idle()
    }

    /// Returns when nothing is under way any more.
    pub(super) async fn await_everything(&self) {
        while !self.idle() {
            self.health.beat();
            self.await_slot(FULL_PAUSE).await;
        }
    }

    async fn await_slot(&self, patience: Duration) {
        let waits = self.routes.iter().map(|route| Box::pin(route.slots.freed()));
        let any = futures_util::future::select_all(waits);
        let _ = tokio::time::timeout(patience, any).await;
    }

    /// Waits for what is next; `restless` rounds before this one found rows and were woken at once.
    async fn rest(&self, round: &Round, restless: u32) -> u32 {
        let poll = Duration::from_millis(self.config.poll_ms);
        if round.rows == 0 {
            if round.full {
                self.await_slot(FULL_PAUSE).await;
            } else {
                self.wake.sleep(poll).await;
            }
            return 0;
        }
        let calm = !round.more && !round.full && restless < LIGHT_ROUNDS;
        if calm && self.wake.is_wakeable() {
            // Whoever commits from here on wakes us: another look would find nothing.
            return if self.wake.sleep(poll).await { 0 } else { restless + 1 };
        }
        self.wake.busy();
        if !round.more {
            // Nearly empty under load: let a few rows gather, instead of a claim for each.
            tokio::time::sleep(Duration::from_millis(self.config.debounce_ms)).await;
        }
        LIGHT_ROUNDS
    }
}

fn tell(route: &Route, suspect: &Row) {
    tracing::warn!(outbox_id = %suspect.outbox_id, participant_id = suspect.participant_id, rail = %route.name,
        "this row was lost with its worker more than once: it is sent alone");
}
