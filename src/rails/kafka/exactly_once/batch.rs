//! From the lanes of a batch to the records of its transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use rdkafka::client::{Client, ClientContext};

use super::super::courier::{give_back, report_from};
use super::super::{classify, headers, size};
use super::register;
use super::shared::Shared;
use super::verdicts::Verdicts;
use crate::delivery::{Batch, Lane, Outcome, Row};

/// One record to send.
pub(super) struct Parcel {
    pub(super) lane: Arc<Lane>,
    pub(super) index: usize,
    pub(super) topic: Arc<str>,
    /// Whether its topic keeps it until it is old.
    pub(super) kept: bool,
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

    /// Whether it cannot be torn, and its record itself says whether it was committed.
    pub(super) fn speaks_for_itself(&self) -> bool {
        matches!(&*self.parcels, [parcel] if parcel.kept)
    }

    /// The row that is sent in this place.
    pub(super) fn row(&self, place: usize) -> &Row {
        let parcel = &self.parcels[place];
        &parcel.lane.rows()[parcel.index]
    }
}

/// Reports what is not to be sent, and returns the rest.
pub(super) fn plan<C: ClientContext>(
    shared: &Shared,
    client: &Client<C>,
    verdicts: &Verdicts,
    batch: Batch,
    lanes: &[Arc<Lane>],
) -> Plan {
    let mut plan = Plan { batch, parcels: Vec::new() };
    let mark = register::mark(&shared.scope, batch);
    for lane in lanes {
        if shared.is_closing() || !lane.may_send(shared.settings.timeout) {
            give_back(lane, 0);
            continue;
        }
        for index in lane.unreported() {
            match judge(shared, client, verdicts, lane, index, &mark) {
                Ok((topic, kept)) => {
                    plan.parcels.push(Parcel { lane: Arc::clone(lane), index, topic, kept });
                }
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

/// The topic of a row and whether that keeps it, or why it is not sent.
fn judge<C: ClientContext>(
    shared: &Shared,
    client: &Client<C>,
    verdicts: &Verdicts,
    lane: &Lane,
    index: usize,
    mark: &str,
) -> Result<(Arc<str>, bool), Outcome> {
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
    verdicts.of(row).map_or(Ok((topic, found.keeps)), Err)
}
