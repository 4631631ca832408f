//! The end of a case, where everything that was enqueued must come out; and the archive.

use uuid::Uuid;

use super::case::{Case, Checked, NO_OUTCOME, Violation, worker_name};
use super::outcomes::Asked;
use super::state::{Name, State};
use super::steps::SESSIONS;

/// Lanes that were paused, halted or crashed need a few rounds; more than this is a stranded row.
const ROUNDS: usize = 12;
/// How often upkeep is tried while somebody else's transaction is in its way.
const PASSES: usize = 500;
const HOUR_MS: i64 = 3_600_000;
/// Beyond the hot ledger's age, which is a day here, after a partition of a day has ended.
const AGE_MS: i64 = 50 * HOUR_MS;

const UPKEEP: &str = "SELECT u.action, u.partition_name::text, u.detail, p.from_id, p.to_id FROM outbox.run_outbox_upkeep() AS u \
    LEFT JOIN outbox.payment_outbox_partitions AS p ON p.partition_name = u.partition_name";

impl Case<'_> {
    /// Resumes, dismisses, waits, claims and completes until nothing is left.
    pub(super) async fn drain(&mut self) -> Checked {
        for session in 0..SESSIONS {
            self.end(session, session % 2 == 0).await;
            self.check().await?;
        }
        for _ in 0..ROUNDS {
            self.unstop().await?;
            self.advance(HOUR_MS).await;
            self.deliver().await?;
            if self.model.state.rows.is_empty() && self.seen.lanes.is_empty() {
                return Ok(());
            }
        }
        Err(format!("stranded: {:?} in {:?}", self.model.state.rows, self.seen))
    }

    async fn unstop(&mut self) -> Checked {
        for (lane, stop) in self.model.state.stops.clone() {
            if stop.paused && self.model.state.stop(&lane).paused {
                self.resume(0, &(lane.0, lane.1)).await?;
                self.check().await?;
            }
            if let Some(failure) = stop.halted_by {
                self.dismiss_or_skip(failure).await?;
                self.check().await?;
            }
        }
        Ok(())
    }

    async fn dismiss_or_skip(&mut self, failure: Uuid) -> Checked {
        let state = &self.model.state;
        let open = state.failures.get(&failure).is_some_and(|failure| failure.resolution.is_none());
        if open {
            return self.dismiss(1, failure).await;
        }
        let lane = state.failures[&failure].lane.clone();
        self.skip(1, &lane).await
    }

    async fn deliver(&mut self) -> Checked {
        let worker = worker_name(0);
        self.repair(0, &worker, 500).await?;
        self.check().await?;
        self.advance(2_000).await;
        self.claim(1, &worker, 500, None, None, 60).await?;
        self.check().await?;
        let ask = |given: super::case::Given| Asked {
            name: given.name,
            id: given.id,
            token: given.token,
            outcome: NO_OUTCOME,
        };
        let held: Vec<Asked> = self.held(2, &worker).into_iter().map(ask).collect();
        self.complete(2, &worker, &held, false).await?;
        self.check().await
    }

    /// Everything is finished and looked after, and then it gets old.
    pub(super) async fn age(&mut self) -> Checked {
        self.drain().await?;
        let open = |state: &State| -> Vec<Uuid> {
            let open = state.failures.iter().filter(|(_, failure)| failure.resolution.is_none());
            open.map(|(id, _)| *id).collect()
        };
        // One in four is left open, and keeps its partition.
        let keep = self.requests.len().is_multiple_of(4);
        for failure in open(&self.model.state).into_iter().skip(usize::from(keep)) {
            self.dismiss(0, failure).await?;
        }
        self.advance(AGE_MS).await;
        // Whoever has been at work in the whole server since before it got old must have ended.
        for _ in 0..PASSES {
            if self.upkeep(0).await? {
                break;
            }
            self.check().await?;
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// One pass; whether no transaction kept it from the ledger.
    pub(super) async fn upkeep(&mut self, session: usize) -> Result<bool, Violation> {
        if self.model.open(session).is_some() {
            return Ok(false);
        }
        let mut alone = true;
        self.bench.look_away().await;
        let rows = self.bench.sessions[session].query(UPKEEP, &[]).await;
        let rows = rows.map_err(|error| format!("upkeep was refused: {error:?}"))?;
        for row in rows {
            let (action, detail): (String, String) = (row.get(0), row.get(2));
            let partition: Option<String> = row.get(1);
            let ledger = partition.is_some_and(|name| name.starts_with("payment_outbox_attempts"));
            let range: (Option<Uuid>, Option<Uuid>) = (row.get(3), row.get(4));
            let (true, (Some(from), Some(to))) = (ledger, range) else { continue };
            match action.as_str() {
                "again" if detail.contains("keys cleared") => self.forget_keys(from, to)?,
                "archived" => self.archived(from, to)?,
                "kept" if detail.contains("transaction") => alone = false,
                _ => {}
            }
        }
        self.bench.look_into_archive().await;
        Ok(alone)
    }

    /// Nothing of a partition that leaves is unfinished.
    fn may_leave(&self, from: Uuid, to: Uuid) -> Checked {
        let state = &self.model.state;
        let inside = |id: &Uuid| (from..to).contains(id);
        let pending = state.rows.keys().any(|name| self.own_id(*name).is_none_or(|id| inside(&id)));
        let open =
            state.failures.iter().any(|(id, failure)| inside(id) && failure.resolution.is_none());
        if pending || open {
            return Err(format!(
                "the partition of {from} to {to} leaves, but pending: {pending}, open failure: {open}"
            ));
        }
        Ok(())
    }

    fn own_id(&self, name: Name) -> Option<Uuid> {
        match name {
            Name::Own(id) => Some(id),
            Name::LetterOf(buried) => {
                self.seen.letters.get(&buried).and_then(|ids| ids.first()).copied()
            }
        }
    }

    fn forget_keys(&mut self, from: Uuid, to: Uuid) -> Checked {
        self.may_leave(from, to)?;
        self.model.state.keys.retain(|_, id| !(from..to).contains(id));
        Ok(())
    }

    fn archived(&mut self, from: Uuid, to: Uuid) -> Checked {
        self.may_leave(from, to)?;
        let inside = |id: &Uuid| (from..to).contains(id);
        let gone = |name: &Name| self.own_id(*name).is_some_and(|id| inside(&id));
        let names: Vec<Name> = self.model.state.ledger.keys().copied().filter(gone).collect();
        for name in names {
            if let Some(tries) = self.model.state.ledger.remove(&name) {
                self.model.state.archive.insert(name, tries);
            }
        }
        self.model.state.failures.retain(|id, _| !inside(id));
        self.note("archived", 1);
        Ok(())
    }
}
