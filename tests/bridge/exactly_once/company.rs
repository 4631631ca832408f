//! A scene in which one worker stays while others come and go, again and again: a kill costs the start of
//! one process, so that many fit into a minute.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::rounds;
use super::scene::Scene;
use crate::process::{Bridge, PATIENCE, Setup};
use crate::rows::{all_done, enqueue, wait_for};

/// So many scenes go on at the same time: much of what they do is waiting.
pub(super) const AT_ONCE: usize = 6;
/// How often rows come in while something is awaited.
const ROWS_EVERY: Duration = Duration::from_millis(200);

/// Two shards: one for each.
pub(super) struct Company {
    pub(super) scene: Scene,
    /// Lives through it all, and takes over from whoever does not.
    _steady: Bridge,
}

impl Company {
    pub(super) async fn new() -> Self {
        let scene = Scene::with_shards(2, "").await;
        let _steady = scene.setup.run();
        _steady.logged_times("the shard is ready", 2).await;
        Self { scene, _steady }
    }

    /// A guest, and rows until `over` says that it has done what it came for.
    pub(super) async fn receive(
        &self,
        setup: &Setup,
        mut over: impl FnMut(&mut Bridge) -> bool,
    ) -> Bridge {
        let client = self.scene.database.connect().await;
        let mut guest = setup.run();
        let until = Instant::now() + PATIENCE;
        while !over(&mut guest) {
            assert!(Instant::now() < until, "never:\n{}", guest.log());
            enqueue(&client, "kafka", 20, 20).await;
            tokio::time::sleep(ROWS_EVERY).await;
        }
        guest
    }

    /// Kills the guest, if it is not dead yet. Its lease passes, and what it had is delivered.
    pub(super) async fn bury(&self, guest: Bridge) {
        drop(guest);
        self.scene.let_the_leases_pass().await;
        all_done(&self.scene.database).await;
    }

    /// Every row that ever came in is there once, in order, and where the ledger says it is.
    pub(super) async fn is_exact(&self) {
        self.scene.is_exact(self.scene.enqueued().await).await;
    }
}

/// Waits until each of so many workers has a share of the shards, and can deliver.
pub(super) async fn shared_by(scene: &Scene, workers: usize) {
    let shared = format!(
        "SELECT count(DISTINCT owner) = {workers} AND bool_and(ready) FROM outbox.payment_outbox_shards"
    );
    wait_for(&scene.database, &shared).await;
}

/// How much each scene does of so much: a scene is looked at when it is over, so it must not be endless. The
/// long form has enough of them to do a few at a time.
pub(super) fn parts(whole: usize, most: usize) -> impl Iterator<Item = usize> {
    let most = if rounds() == 1 { most } else { most.min(whole.div_ceil(AT_ONCE)) };
    (0..whole).step_by(most).map(move |from| most.min(whole - from))
}

/// A scene for each part of the work, a few at the same time, in a thread each: who drops a database waits for
/// everybody that is about to connect to the server, and must not be the one for whom they wait.
pub(super) fn a_few_at_a_time<T, F: Future>(
    work: impl Iterator<Item = T> + Send,
    scene: impl Fn(T) -> F + Sync,
) {
    let work = Mutex::new(work);
    let next = || work.lock().unwrap().next();
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        while let Some(part) = next() {
            runtime.block_on(scene(part));
        }
    };
    std::thread::scope(|threads| (0..AT_ONCE).for_each(|_| drop(threads.spawn(run))));
}
