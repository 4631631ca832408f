//! Carries a lane: one row after the other, each with its outcome.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::{Client, Url};
use tokio::sync::{SemaphorePermit, watch};

use super::answer::{Answer, Judge};
use super::headers::HeaderPlan;
use super::pace::Gate;
use super::transport;
use crate::delivery::{Failure, Lane, Outcome, Row};
use crate::failpoint::failpoint;

/// A lane that waits for its turn looks this often whether it may still be sent.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// What it takes to notice that a request is overdue, and to report it.
const GRACE: Duration = Duration::from_secs(1);

/// Whatever the lanes of a rail share.
pub(super) struct Courier {
    pub(super) client: Client,
    pub(super) url: Url,
    pub(super) headers: HeaderPlan,
    pub(super) judge: Judge,
    pub(super) gate: Gate,
    pub(super) timeout: Duration,
    pub(super) idempotency_ttl: Option<Duration>,
}

impl Courier {
    pub(super) fn longest_send(&self) -> Duration {
        self.timeout + GRACE
    }

    /// Sends the rows of a lane until one of them stops it, and gives back what is left.
    pub(super) async fn carry(&self, lane: Arc<Lane>, mut abandoned: watch::Receiver<bool>) {
        for index in lane.unreported() {
            let Some(outcome) = self.carry_row(&lane, index, &mut abandoned).await else { break };
            // What is unavailable for this row is so for the others, whether they are ordered or not.
            let goes_on =
                lane.goes_on_after(&outcome) && !matches!(outcome, Outcome::Unavailable { .. });
            lane.report(index, outcome);
            if !goes_on {
                break;
            }
        }
        lane.give_back_the_rest();
    }

    /// Nothing when the row may not be sent any more.
    async fn carry_row(
        &self,
        lane: &Lane,
        index: usize,
        abandoned: &mut watch::Receiver<bool>,
    ) -> Option<Outcome> {
        let row = &lane.rows()[index];
        if let Some(refused) = self.outlived(row, SystemTime::now()) {
            return Some(refused);
        }
        let _turn = tokio::select! {
            biased;
            () = given_up(abandoned) => return None,
            turn = self.turn(lane) => turn?,
        };
        Some(tokio::select! {
            biased;
            outcome = self.send(row) => outcome,
            () = given_up(abandoned) => Outcome::Unavailable {
                failure: Failure::new(
                    "HTTP_ABANDONED",
                    "the worker stopped before the receiver answered",
                ),
                maybe_sent: true,
            },
        })
    }

    /// A row that may have been sent before, also as the row it replays, is not sent again once the
    /// receiver may have forgotten its key, because that could pay twice. The first send was not
    /// before the first claim.
    fn outlived(&self, row: &Row, now: SystemTime) -> Option<Outcome> {
        let ttl = self.idempotency_ttl?;
        if now.duration_since(row.in_doubt_since?).unwrap_or_default() <= ttl {
            return None;
        }
        let message = format!(
            "may have been sent before, and the receiver remembers a key for {} s only \
             (idempotency_ttl_seconds): ask the receiver before it is replayed",
            ttl.as_secs()
        );
        Some(Outcome::Refused(Failure::new("IDEMPOTENCY_WINDOW_PASSED", message)))
    }

    /// Waits in line; nothing when the lease does not cover the send, or the worker shuts down.
    async fn turn(&self, lane: &Lane) -> Option<SemaphorePermit<'_>> {
        let mut turn = std::pin::pin!(self.gate.enter());
        loop {
            if !lane.may_send(self.longest_send()) {
                return None;
            }
            tokio::select! {
                biased;
                slot = &mut turn => return slot.filter(|_| lane.may_send(self.longest_send())),
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    async fn send(&self, row: &Row) -> Outcome {
        let now = SystemTime::now();
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.headers(row, now))
            .body(row.payload.clone());
        let exchange = async {
            let answer = request.send().await?;
            // The first place where a request has certainly left us.
            failpoint("sent");
            Answer::read(answer).await
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(Ok(answer)) => self.judge.outcome(&answer, SystemTime::now()),
            Ok(Err(error)) => transport::outcome(&error),
            Err(_) => transport::timed_out(self.timeout),
        }
    }
}

/// Comes back when the rail gives up, and never before.
async fn given_up(abandoned: &mut watch::Receiver<bool>) {
    if abandoned.wait_for(|abandoned| *abandoned).await.is_err() {
        // The rail itself is gone, and nobody waits for its lanes any more.
        std::future::pending::<()>().await;
    }
}
