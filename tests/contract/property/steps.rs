//! What a case does. Steps name things by place ("the second row that this worker holds"), so that
//! a list of steps stays meaningful when some of them are left out.

#[derive(Clone, Debug)]
pub(super) enum KeyChoice {
    New,
    /// The nth key that was used so far, for the same request.
    Used(usize),
    /// The nth key that was used so far, for another request.
    Conflicting(usize),
}

#[derive(Clone, Debug)]
pub(super) struct NewRow {
    pub(super) participant: usize,
    pub(super) rail: usize,
    pub(super) key: KeyChoice,
    pub(super) delay_seconds: i32,
}

/// Which of the lanes: the nth that there is, or one by name where there are fewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) nth: usize,
    pub(super) participant: usize,
    pub(super) rail: usize,
}

/// Which of the rows that a worker was given.
#[derive(Clone, Debug)]
pub(super) struct Picks {
    pub(super) worker: usize,
    /// Of the rows it holds now, or of all that it ever had.
    pub(super) stale: bool,
    pub(super) from: usize,
    pub(super) count: usize,
    pub(super) reversed: bool,
    /// The place of one that comes with a token of our invention.
    pub(super) wrong_token: Option<usize>,
    /// By a worker who does not hold them.
    pub(super) impostor: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub(super) state: &'static str,
    pub(super) delay_seconds: Option<i32>,
    pub(super) counted: Option<bool>,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Begin {
        session: usize,
    },
    End {
        session: usize,
        commit: bool,
    },
    Enqueue {
        session: usize,
        rows: Vec<NewRow>,
        batch: bool,
        report_errors: bool,
    },
    Claim {
        session: usize,
        worker: usize,
        size: i32,
        lane_rows: Option<i32>,
        rail: Option<usize>,
        lease_seconds: i32,
    },
    Complete {
        session: usize,
        picks: Picks,
        outcomes: Vec<Outcome>,
        single: bool,
    },
    Release {
        session: usize,
        picks: Picks,
        delay_seconds: i32,
    },
    Renew {
        session: usize,
        picks: Picks,
        lease_seconds: i32,
    },
    Repair {
        session: usize,
        worker: usize,
        lanes: i32,
    },
    Advance {
        seconds: i64,
    },
    Pause {
        session: usize,
        place: Place,
    },
    Resume {
        session: usize,
        place: Place,
    },
    Skip {
        session: usize,
        place: Place,
    },
    Replay {
        session: usize,
        failure: usize,
    },
    Dismiss {
        session: usize,
        failure: usize,
    },
    /// Everything is finished, then the clock moves on beyond the hot ledger's age.
    Age,
    Upkeep {
        session: usize,
    },
}

pub(super) const SESSIONS: usize = 4;
pub(super) const WORKERS: usize = 2;
pub(super) const PARTICIPANTS: usize = 2;

impl Step {
    pub(super) fn session(&mut self) -> Option<&mut usize> {
        match self {
            Self::Begin { session }
            | Self::End { session, .. }
            | Self::Enqueue { session, .. }
            | Self::Claim { session, .. }
            | Self::Complete { session, .. }
            | Self::Release { session, .. }
            | Self::Renew { session, .. }
            | Self::Repair { session, .. }
            | Self::Pause { session, .. }
            | Self::Resume { session, .. }
            | Self::Skip { session, .. }
            | Self::Replay { session, .. }
            | Self::Dismiss { session, .. }
            | Self::Upkeep { session } => Some(session),
            Self::Advance { .. } | Self::Age => None,
        }
    }
}
