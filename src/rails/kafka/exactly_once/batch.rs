//! From the lanes of a batch to the records of its transaction.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::client::{Client, ClientContext};
use uuid::Uuid;

use super::super::courier::{give_back, report_from};
use super::super::{classify, headers, size};
use super::register;
use super::shared::Shared;
use crate::delivery::{Batch, Lane, Outcome};

/// How long what was found out about a row is remembered: it comes back with the next claim or the one after.
const REMEMBERED_FOR: Duration = Duration::from_secs(600);
/// More than that are not remembered at once: each costs a transaction to find.
const MOST_VERDICTS: usize = 1_000;

/// One record to send.
pub(super) struct Parcel {
    pub(super) lane: Arc<Lane>,
    pub(super) index: usize,
    pub(super) topic: Arc<str>,
}

/// The records of one transaction, in the order in which they are sent.
pub(super) struct Plan {
    pub(super) batch: Batch,
    pub(super) parcels: Vec<Parcel>,
}

impl Plan {
    pub(super) fn topics(&self) -> BTreeSet<&str> {
        self.parcels.iter().map(|parcel| &*parcel.topic).collect()
    }
}

/// What a broker said of single rows. A transaction that one row has spoilt takes the others with it, so
/// the row gets its outcome the next time, when it is left out and the rows before it have got through.
#[derive(Default)]
pub(super) struct Verdicts(HashMap<Uuid, (Outcome, Instant)>);

impl Verdicts {
    pub(super) fn remember(&mut self, outbox_id: Uuid, outcome: Outcome) {
        self.0.retain(|_, (_, at)| at.elapsed() < REMEMBERED_FOR);
        if self.0.len() < MOST_VERDICTS {
            self.0.insert(outbox_id, (outcome, Instant::now()));
        }
    }

    fn take(&mut self, outbox_id: Uuid) -> Option<Outcome> {
        self.0.remove(&outbox_id).map(|(outcome, _)| outcome)
    }
}

/// Reports what is not to be sent, and returns the rest.
pub(super) fn plan<C: ClientContext>(
    shared: &Shared,
    client: &Client<C>,
    verdicts: &mut Verdicts,
    batch: Batch,
    lanes: &[Arc<Lane>],
) -> Plan {
    let mut plan = Plan { batch, parcels: Vec::new() };
    let mark = register::mark(shared.rail(), batch);
    for lane in lanes {
        if shared.is_closing() || !lane.may_send(shared.settings.timeout) {
            give_back(lane, 0);
            continue;
        }
        for index in lane.unreported() {
            match judge(shared, client, verdicts, lane, index, &mark) {
                Ok(topic) => plan.parcels.push(Parcel { lane: Arc::clone(lane), index, topic }),
                Err(outcome @ Outcome::Unavailable { .. }) => {
                    report_from(lane, index, &outcome);
                    break;
                }
                Err(outcome) => {
                    let goes_on = lane.goes_on_after(&outcome);
                    lane.report(index, outcome);
                    if !goes_on {
                        give_back(lane, index + 1);
                        break;
                    }
                }
            }
        }
    }
    plan
}

/// The topic of a row, or why it is not sent.
fn judge<C: ClientContext>(
    shared: &Shared,
    client: &Client<C>,
    verdicts: &mut Verdicts,
    lane: &Lane,
    index: usize,
    mark: &str,
) -> Result<Arc<str>, Outcome> {
    let row = &lane.rows()[index];
    let topic = shared.settings.topics.of(row).map_err(Outcome::Refused)?;
    let unavailable =
        |code| Outcome::Unavailable { failure: classify::failure(code), maybe_sent: false };
    let found = shared.topic(client, &topic).map_err(unavailable)?;
    let mut headers = headers::headers(row, shared.settings.headers, &shared.settings.source);
    headers.push((register::HEADER, mark.into()));
    let size = size::batch_of_one(&row.participant_id, &row.payload, &headers);
    if let Some(limit) = found.limit.filter(|limit| size > *limit) {
        return Err(Outcome::Refused(classify::too_large(Some(limit))));
    }
    match verdicts.take(row.outbox_id) {
        Some(outcome) => Err(outcome),
        None => Ok(topic),
    }
}
