//! Gives the rows of a lane to a producer.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::producer::BaseRecord;

use super::acquaintance::Acquaintance;
use super::callbacks::Parcel;
use super::carrier::Carrier;
use super::courier::{give_back, unreported};
use super::headers::{self, Headers};
use super::settings::Settings;
use super::state::{Found, Known};
use super::{classify, size};
use crate::delivery::{DEAD_LETTERS, Failure, Lane, Outcome, Row};

/// A topic's limit that is older is read again before a row fails for it: somebody may have raised
/// it so that a replay of the row gets through.
const LIMIT_LASTS: Duration = Duration::from_secs(10);

/// The `max.message.bytes` of a topic that nobody has configured.
const USUAL_LIMIT: usize = 1_048_588;

/// What became of a lane. The rows before the given one have their outcome, or are under way.
pub(super) enum Handed {
    Done,
    /// The topic of this row has been asked about.
    Wait(usize),
    /// The topic of this row has to be asked about.
    Ask(Arc<str>, usize),
}

/// Hands over a lane's rows from `from` on, in order and without waiting for answers. A lane that
/// halts at a failed row gets one row at a time; and one row goes ahead where the partition may not
/// know the producer yet, unless that is `known_in` the topic.
///
/// Only rows for the topic of the first go together: two topics have no common order, so that the
/// second row could arrive without the first. What is behind them is given back.
pub(super) fn lane(
    settings: &Settings,
    topics: &mut HashMap<Arc<str>, Known>,
    carrier: &Carrier,
    lane: &Arc<Lane>,
    from: usize,
    known_in: Option<&Arc<str>>,
) -> Handed {
    let Some((first, topic)) = first_with_topic(settings, lane, from) else { return Handed::Done };
    let found = match topics.get(&topic) {
        Some(Known::Ready(found)) => *found,
        Some(Known::Asked) => return Handed::Wait(first),
        None => return Handed::Ask(topic, first),
    };
    let acquaintance = carrier.acquaintance(&topic, found.partitions);
    let ordered = !lane.goes_on_after(&Outcome::NotSent);
    let introduced = acquaintance.with_all() || known_in == Some(&topic);
    let halts = !lane.goes_on_after(&Outcome::Refused(Failure::new("", "")));
    let one_by_one = halts || (ordered && !introduced);
    let hand_over = HandOver { settings, carrier, lane, topic, found, acquaintance, one_by_one };
    let started = Instant::now();
    let stopped = unreported(lane, first)
        .find_map(|index| Some((index, hand_over.row(index).break_value()?)));
    let end = match &stopped {
        None => lane.rows().len(),
        Some((index, Stop::NextWaits)) => index + 1,
        Some((index, _)) => *index,
    };
    carrier.under_way.add(lane, first..end, started);
    match stopped {
        None | Some((_, Stop::NextWaits)) => {}
        Some((index, Stop::Before)) => give_back(lane, index),
        Some((index, Stop::After)) => give_back(lane, index + 1),
        Some((index, Stop::AskAgain)) if index == first => {
            return Handed::Ask(hand_over.topic, index);
        }
        Some((index, Stop::AskAgain)) => {
            topics.remove(&hand_over.topic);
            give_back(lane, index);
        }
    }
    Handed::Done
}

/// The first row that has a topic; those before it are refused.
fn first_with_topic(settings: &Settings, lane: &Lane, from: usize) -> Option<(usize, Arc<str>)> {
    for index in unreported(lane, from) {
        match settings.topics.of(&lane.rows()[index]) {
            Ok(topic) => return Some((index, topic)),
            Err(failure) => {
                if refuse(lane, index, failure).is_break() {
                    give_back(lane, index + 1);
                    return None;
                }
            }
        }
    }
    None
}

/// Where a lane stops.
enum Stop {
    /// This row is under way, and its answer brings the next.
    NextWaits,
    /// Nothing is known of this row.
    Before,
    /// This row has its outcome.
    After,
    /// The topic's limit is too old to refuse this row for it.
    AskAgain,
}

fn refuse(lane: &Lane, index: usize, failure: Failure) -> ControlFlow<Stop> {
    report(lane, index, Outcome::Refused(failure))
}

fn report(lane: &Lane, index: usize, outcome: Outcome) -> ControlFlow<Stop> {
    let goes_on = lane.goes_on_after(&outcome);
    lane.report(index, outcome);
    if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(Stop::After) }
}

struct HandOver<'a> {
    settings: &'a Settings,
    carrier: &'a Carrier,
    lane: &'a Arc<Lane>,
    topic: Arc<str>,
    found: Found,
    acquaintance: Arc<Acquaintance>,
    one_by_one: bool,
}

impl HandOver<'_> {
    fn row(&self, index: usize) -> ControlFlow<Stop> {
        let row = &self.lane.rows()[index];
        match self.settings.topics.of(row) {
            Ok(topic) if topic == self.topic => {}
            Ok(_) => return ControlFlow::Break(Stop::Before),
            Err(failure) => return refuse(self.lane, index, failure),
        }
        let headers = headers::headers(row, self.settings.headers, &self.settings.source);
        match self.offer(row, index, &row.payload, &headers) {
            Err(refusal) if classify::is_too_large(&refusal) => self.too_large(row, index, refusal),
            offered => self.offered(index, offered),
        }
    }

    /// A dead letter has nowhere else to go, so it goes without what makes it large: the ledger has
    /// it all. Any other row fails.
    fn too_large(&self, row: &Row, index: usize, refusal: Outcome) -> ControlFlow<Stop> {
        if self.found.at.elapsed() > LIMIT_LASTS {
            return ControlFlow::Break(Stop::AskAgain);
        }
        if row.rail_type != DEAD_LETTERS {
            return report(self.lane, index, refusal);
        }
        let headers = headers::shortened(row, self.settings.headers, &self.settings.source);
        self.offered(index, self.offer(row, index, "{}", &headers))
    }

    fn offered(&self, index: usize, offered: Result<(), Outcome>) -> ControlFlow<Stop> {
        match offered {
            Ok(()) if self.one_by_one => ControlFlow::Break(Stop::NextWaits),
            Ok(()) => ControlFlow::Continue(()),
            Err(outcome) => report(self.lane, index, outcome),
        }
    }

    /// What the topic takes. A dead letter may not be refused, so where nobody may ask the topic it
    /// is made to fit a topic as Kafka makes them.
    fn limit(&self, row: &Row) -> Option<usize> {
        self.found.limit.or((row.rail_type == DEAD_LETTERS).then_some(USUAL_LIMIT))
    }

    fn offer(
        &self,
        row: &Row,
        index: usize,
        payload: &str,
        headers: &Headers<'_>,
    ) -> Result<(), Outcome> {
        let size = size::batch_of_one(&row.participant_id, payload, headers);
        if let Some(limit) = self.limit(row).filter(|limit| size > *limit) {
            return Err(Outcome::Refused(classify::too_large(Some(limit))));
        }
        let parcel = Box::new(Parcel {
            lane: Arc::clone(self.lane),
            index,
            topic: Arc::clone(&self.topic),
            acquaintance: Arc::clone(&self.acquaintance),
            next_waits: self.one_by_one,
        });
        let record = BaseRecord::with_opaque_to(&self.topic, parcel)
            .key(row.participant_id.as_str())
            .payload(payload)
            .headers(headers::owned(headers));
        self.carrier.send(record).map_err(|code| self.settings.classes.before_hand_over(code))
    }
}
