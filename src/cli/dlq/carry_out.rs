//! Replays what a preview showed.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior};
use uuid::Uuid;

use super::preview::PreviewRow;
use crate::cli::CliError;
use crate::cli::act::{is_in_doubt, refused};
use crate::store::{By, ReplayCandidate, Replayed, Store, StoreError};

/// Tries of one row that meets a producer or another operator.
const MAX_TRIES: u32 = 5;

/// Somebody else resolved the failure after the preview.
const RESOLVED_MEANWHILE: [&str; 2] = ["P7010", "P7011"];

/// How far a replay has come.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) replayed: Vec<Done>,
    pub(super) refused: Vec<Refused>,
}

#[derive(Serialize)]
pub(super) struct Done {
    pub(super) replay_of: Uuid,
    pub(super) participant_id: String,
    pub(super) rail_type: String,
    #[serde(flatten)]
    pub(super) replayed: Replayed,
}

/// A row that somebody else replayed or dismissed after the preview.
#[derive(Serialize)]
pub(super) struct Refused {
    pub(super) outbox_id: Uuid,
    pub(super) why: String,
}

/// One after the other, each in a transaction of its own: a long one would hold up producers.
pub(super) async fn replay_all(
    store: &mut Store,
    rows: &[PreviewRow],
    by: By<'_>,
    rate: Option<u32>,
    progress: &mut Progress,
) -> Result<(), CliError> {
    let mut pace = rate.map(pace);
    let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
    for row in rows {
        tokio::select! {
            biased;
            _ = &mut interrupted => return Err(stopped(progress, rows, None)),
            () = turn(&mut pace) => {}
        }
        let ReplayCandidate { outbox_id, participant_id, rail_type, .. } = &row.candidate;
        match replay_one(store, *outbox_id, by).await {
            Ok(replayed) => progress.replayed.push(Done {
                replay_of: *outbox_id,
                participant_id: participant_id.clone(),
                rail_type: rail_type.clone(),
                replayed,
            }),
            Err(error) if was_resolved(&error) => {
                progress.refused.push(Refused { outbox_id: *outbox_id, why: error.to_string() });
            }
            Err(error) if progress.replayed.is_empty() => return Err(refused(error)),
            Err(error) => return Err(stopped(progress, rows, Some((error, *outbox_id)))),
        }
    }
    Ok(())
}

async fn replay_one(store: &mut Store, id: Uuid, by: By<'_>) -> Result<Replayed, StoreError> {
    let mut tries = 1;
    loop {
        match store.replay(id, by).await {
            Err(error) if error.is_transient() && tries < MAX_TRIES => tries += 1,
            result => return result,
        }
    }
}

fn was_resolved(error: &StoreError) -> bool {
    error.server().is_some_and(|server| RESOLVED_MEANWHILE.contains(&server.code.as_str()))
}

/// `cause`: what stopped it, and at which row.
fn stopped(
    progress: &Progress,
    rows: &[PreviewRow],
    cause: Option<(StoreError, Uuid)>,
) -> CliError {
    let (cause, row) = cause.unzip();
    let in_doubt = row.filter(|_| cause.as_ref().is_some_and(is_in_doubt));
    CliError::ReplayStopped { done: progress.replayed.len(), asked: rows.len(), in_doubt, cause }
}

fn pace(rate: u32) -> Interval {
    let mut interval = tokio::time::interval(Duration::from_secs(1) / rate);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    interval
}

async fn turn(pace: &mut Option<Interval>) {
    if let Some(pace) = pace {
        pace.tick().await;
    }
}
