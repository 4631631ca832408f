//! Who has what open: the state that everybody sees, and what each transaction holds back.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::state::{Key, LaneId, Patch, State};
use super::steps::SESSIONS;

/// What an open transaction keeps others from.
#[derive(Clone, Default)]
pub(super) struct Locks {
    pub(super) participants: BTreeSet<String>,
    pub(super) keys: BTreeSet<Key>,
    /// Nobody else changes or claims these.
    pub(super) lanes: BTreeSet<LaneId>,
    /// A row is on its way into these; they may be new.
    pub(super) admitted: BTreeSet<LaneId>,
    pub(super) failures: BTreeSet<Uuid>,
    /// A claim may have taken any lane that had nothing leased; those that had are listed.
    pub(super) looked_except: Option<BTreeSet<LaneId>>,
}

impl Locks {
    fn may_have(&self, lane: &LaneId) -> bool {
        let looked = self.looked_except.as_ref().is_some_and(|except| !except.contains(lane));
        self.lanes.contains(lane) || looked
    }

    fn add(&mut self, more: Self) {
        self.participants.extend(more.participants);
        self.keys.extend(more.keys);
        self.lanes.extend(more.lanes);
        self.admitted.extend(more.admitted);
        self.failures.extend(more.failures);
        self.looked_except = self.looked_except.take().or(more.looked_except);
    }
}

/// An open transaction. Producers may go on in theirs; whoever else opens one makes one call.
#[derive(Clone, Default)]
pub(super) struct Open {
    patches: Vec<Patch>,
    pub(super) locks: Locks,
    pub(super) produces: bool,
}

#[derive(Default)]
pub(super) struct Model {
    /// What is committed.
    pub(super) state: State,
    open: [Option<Open>; SESSIONS],
    pub(super) now: i64,
}

impl Model {
    pub(super) fn at(now: i64) -> Self {
        Self { now, ..Self::default() }
    }

    pub(super) fn begin(&mut self, session: usize) {
        self.open[session] = Some(Open::default());
    }

    pub(super) fn open(&self, session: usize) -> Option<&Open> {
        self.open[session].as_ref()
    }

    /// Whether a call of this kind may be made there.
    pub(super) fn takes(&self, session: usize, produces: bool) -> bool {
        let fresh = |open: &Open| open.patches.is_empty();
        self.open[session].as_ref().is_none_or(|open| fresh(open) || (produces && open.produces))
    }

    /// Whether a claim or a repair can be made there. One whose transaction stays open must not have
    /// met a locked lane: which of its turns it has locked on the way there is nobody's business.
    pub(super) fn takes_look(&self, session: usize) -> bool {
        let locked = self.others(session).any(|(_, locks)| !locks.lanes.is_empty());
        self.takes(session, false) && !(self.open[session].is_some() && locked)
    }

    pub(super) fn end(&mut self, session: usize, commit: bool) {
        let Some(open) = self.open[session].take() else { return };
        if commit {
            open.patches.iter().for_each(|patch| patch.apply(&mut self.state));
        }
    }

    /// What the transaction of a session sees.
    pub(super) fn view(&self, session: usize) -> State {
        let mut state = self.state.clone();
        if let Some(open) = &self.open[session] {
            open.patches.iter().for_each(|patch| patch.apply(&mut state));
        }
        state
    }

    /// A call has been made and has led to `after`.
    pub(super) fn changed(&mut self, session: usize, after: State, locks: Locks, produces: bool) {
        let before = self.view(session);
        match &mut self.open[session] {
            Some(open) => {
                open.patches.push(Patch::between(&before, &after));
                open.locks.add(locks);
                open.produces = produces;
            }
            None => self.state = after,
        }
    }

    fn others(&self, session: usize) -> impl Iterator<Item = (usize, &Locks)> {
        let open = self.open.iter().enumerate().filter(move |(other, _)| *other != session);
        open.filter_map(|(other, open)| Some((other, &open.as_ref()?.locks)))
    }

    pub(super) fn participant_is_locked(&self, session: usize, participant: &str) -> bool {
        self.others(session).any(|(_, locks)| locks.participants.contains(participant))
    }

    pub(super) fn key_is_locked(&self, session: usize, key: &Key) -> bool {
        self.others(session).any(|(_, locks)| locks.keys.contains(key))
    }

    pub(super) fn failure_is_locked(&self, session: usize, failure: &Uuid) -> bool {
        self.others(session).any(|(_, locks)| locks.failures.contains(failure))
    }

    pub(super) fn lane_is_locked(&self, session: usize, lane: &LaneId) -> bool {
        self.others(session).any(|(_, locks)| locks.lanes.contains(lane))
    }

    pub(super) fn lane_may_be_locked(&self, session: usize, lane: &LaneId) -> bool {
        self.others(session).any(|(_, locks)| locks.may_have(lane))
    }

    /// A new row waits for a lane that another transaction has made, or may have deleted.
    pub(super) fn admission_may_wait(&self, session: usize, lane: &LaneId) -> bool {
        self.others(session).any(|(other, locks)| {
            (locks.may_have(lane) || locks.admitted.contains(lane))
                && (self.state.lane(lane).is_empty() || self.view(other).lane(lane).is_empty())
        })
    }

    /// A lane that another transaction has just made cannot be made once more.
    pub(super) fn lane_may_be_new(&self, session: usize, lane: &LaneId) -> bool {
        self.state.lane(lane).is_empty()
            && self.others(session).any(|(_, locks)| locks.admitted.contains(lane))
    }
}
