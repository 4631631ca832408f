//! Which parts of the topics tell what became of a shard's batches.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::{Blind, Told};
use super::register::Entry;
use crate::delivery::{Places, Stand};

/// A part of a partition: from the first offset to before the second.
pub(super) type Stretch = (String, i32, i64, i64);

pub(super) fn topics_of(stretches: &[Stretch]) -> BTreeSet<&str> {
    stretches.iter().map(|(topic, ..)| topic.as_str()).collect()
}

/// What has to be there still.
pub(super) struct Need {
    /// Each topic of which the database knows a place.
    pub(super) noted_topics: bool,
    pub(super) records: Records,
}

/// Which records of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Records {
    /// All since its place: something that nobody has decided about may be there.
    All,
    /// What retention has left.
    Rest,
    /// Nothing, because nothing tells of any: the topic may even be another one by now.
    Any,
}

impl Need {
    pub(super) fn of(stand: &Stand, told: &Told, open: &[&Entry]) -> Self {
        // The database has lost commits: what is deleted meanwhile may be what it does not know of.
        let forgetful = open.iter().any(|entry| entry.batch > stand.batch);
        let records = if stand.under_way || forgetful {
            Records::All
        } else if !told.entries.is_empty() || told.lost {
            Records::Rest
        } else {
            Records::Any
        };
        Self { noted_topics: stand.under_way || told.lost, records }
    }
}

/// From where on the topics are read: from the places that the database knows. Of a topic that it has forgotten, with
/// the batch that first went there, the register remembers where the shard began.
pub(super) fn beginnings(stand: &Stand, open: &[&Entry]) -> Result<Places, Blind> {
    let mut from = stand.places.clone();
    for entry in open.iter().filter(|entry| entry.batch > stand.batch) {
        for (topic, places) in &entry.origin {
            from.entry(topic.clone()).or_insert_with(|| places.clone());
        }
        if let Some(topic) = entry.offsets.keys().find(|topic| !from.contains_key(*topic)) {
            return Err(Blind::Gone(format!(
                "batch {} is in the topic {topic}, but nothing says from where on to read it",
                entry.batch
            )));
        }
    }
    Ok(from)
}

/// What of a topic is to be read: each partition from its place on, as a whole if it is not the one that it was.
pub(super) fn stretches_of(
    topic: &str,
    places: &BTreeMap<i32, i64>,
    bounds: &BTreeMap<i32, (i64, i64)>,
    needed: Records,
) -> Result<Vec<Stretch>, Blind> {
    let gone = places.keys().find(|partition| !bounds.contains_key(partition));
    if let Some(gone) = gone.filter(|_| needed != Records::Any) {
        return Err(Blind::Gone(format!("partition {gone} of {topic} is gone")));
    }
    let stretch = |(partition, (low, high)): (&i32, &(i64, i64))| {
        // A partition that is not among the places is younger than them.
        let from = places.get(partition).copied().unwrap_or(*low);
        let missed = match needed {
            Records::All => *high < from || *low > from,
            Records::Rest => *high < from,
            Records::Any => false,
        };
        if missed {
            return Err(Blind::Gone(format!(
                "partition {partition} of {topic} has the offsets {low} to {high}, but what is to be found out is from {from} on"
            )));
        }
        let from = if *high < from { *low } else { from.max(*low) };
        Ok((topic.to_owned(), *partition, from, *high))
    };
    bounds.iter().map(stretch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(places: &[(i32, i64)], low: i64, needed: Records) -> Option<Vec<(i32, i64, i64)>> {
        let bounds = [(0, (low, 20)), (1, (0, 3))].into();
        let places = places.iter().copied().collect();
        let stretches = stretches_of("t", &places, &bounds, needed).ok()?;
        Some(stretches.into_iter().map(|(_, partition, from, to)| (partition, from, to)).collect())
    }

    #[test]
    fn a_topic_is_read_from_its_places_on_and_what_is_younger_as_a_whole() {
        for needed in [Records::All, Records::Rest, Records::Any] {
            assert_eq!(read(&[(0, 7)], 5, needed), Some(vec![(0, 7, 20), (1, 0, 3)]));
        }
    }

    #[test]
    fn what_retention_has_deleted_is_missed_only_while_a_batch_is_under_way() {
        for needed in [Records::Rest, Records::Any] {
            assert_eq!(read(&[(0, 7)], 9, needed), Some(vec![(0, 9, 20), (1, 0, 3)]));
        }
        assert_eq!(read(&[(0, 7)], 9, Records::All), None);
    }

    #[test]
    fn a_topic_that_is_shorter_than_it_was_is_not_the_same() {
        for needed in [Records::All, Records::Rest] {
            assert_eq!(read(&[(0, 21)], 5, needed), None);
            assert_eq!(read(&[(0, 7), (2, 0)], 5, needed), None, "a partition is gone");
        }
        let whole = Some(vec![(0, 5, 20), (1, 0, 3)]);
        assert_eq!(read(&[(0, 21), (2, 0)], 5, Records::Any), whole, "and is read as a whole");
    }
}
