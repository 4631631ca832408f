//! The lanes that a topic has, and how far each has come.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;

/// No name of a participant or a rail has it.
const BETWEEN: char = '\0';

/// What the next number of a lane is, after the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Forward,
    /// Once more the number that was last.
    Again,
    Back,
}

struct Lane {
    /// Where its name ends in the text of all names; it begins where the one before ends.
    name_ends: usize,
    partition: i32,
    last: i64,
}

/// Lanes by number: a record keeps four bytes of its lane. There may be a million of them, so their
/// names are one text, and the table has nothing but numbers.
#[derive(Default)]
pub(super) struct Lanes {
    names: String,
    known: Vec<Lane>,
    table: HashTable<u32>,
    hashes: RandomState,
    /// Lanes that are in other partitions too, and how far they have come there.
    elsewhere: HashMap<(u32, i32), i64>,
    spread: HashSet<u32>,
}

impl Lanes {
    /// The number of a lane, whether it was known or not.
    pub(super) fn number(&mut self, participant_id: &str, rail_type: &str, partition: i32) -> u32 {
        let start = self.names.len();
        self.names.extend([participant_id, BETWEEN.encode_utf8(&mut [0]), rail_type]);
        let Self { names, known, table, hashes, .. } = self;
        let name = &names[start..];
        let is_it = |number: &u32| name_of(names, known, *number) == name;
        if let Some(number) = table.find(hashes.hash_one(name), is_it).copied() {
            self.names.truncate(start);
            return number;
        }
        let number = u32::try_from(known.len()).unwrap_or(u32::MAX);
        known.push(Lane { name_ends: names.len(), partition, last: i64::MIN });
        let hash = |number: &u32| hashes.hash_one(name_of(names, known, *number));
        table.insert_unique(hash(&number), number, hash);
        number
    }

    /// The next record of a lane. Order is that of a partition: between two there is none.
    pub(super) fn step(&mut self, number: u32, partition: i32, sequence_id: i64) -> Step {
        let Some(lane) = self.known.get_mut(number as usize) else { return Step::Forward };
        let last = if lane.partition == partition {
            &mut lane.last
        } else {
            self.spread.insert(number);
            self.elsewhere.entry((number, partition)).or_insert(i64::MIN)
        };
        match sequence_id.cmp(last) {
            std::cmp::Ordering::Greater => {
                *last = sequence_id;
                Step::Forward
            }
            std::cmp::Ordering::Equal => Step::Again,
            std::cmp::Ordering::Less => Step::Back,
        }
    }

    /// Participant and rail.
    pub(super) fn name(&self, number: u32) -> (&str, &str) {
        name_of(&self.names, &self.known, number).split_once(BETWEEN).unwrap_or_default()
    }

    /// How many are in more than one partition.
    pub(super) fn spread(&self) -> usize {
        self.spread.len()
    }
}

fn name_of<'a>(names: &'a str, known: &[Lane], number: u32) -> &'a str {
    let ends = |number: usize| known.get(number).map(|lane| lane.name_ends);
    let start = (number as usize).checked_sub(1).map_or(Some(0), ends);
    let range = start.zip(ends(number as usize)).map(|(start, end)| start..end);
    range.and_then(|range| names.get(range)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Lanes, Step};

    #[test]
    fn a_lane_is_a_participant_on_a_rail_and_each_partition_has_its_own_order() {
        let mut lanes = Lanes::default();
        let (alice, bob) = (lanes.number("alice", "sepa", 0), lanes.number("bob", "sepa", 0));
        assert_ne!(alice, lanes.number("alice", "ach", 0));
        assert_eq!(alice, lanes.number("alice", "sepa", 1));
        assert_eq!(lanes.name(bob), ("bob", "sepa"));
        let steps = [(alice, 0, 1), (bob, 0, 1), (alice, 0, 3), (alice, 0, 3), (alice, 0, 2)];
        let steps = steps.map(|(lane, partition, number)| lanes.step(lane, partition, number));
        assert_eq!(steps, [Step::Forward, Step::Forward, Step::Forward, Step::Again, Step::Back]);
        assert_eq!(lanes.spread(), 0);
        assert_eq!(lanes.step(alice, 1, 2), Step::Forward);
        assert_eq!(lanes.step(alice, 1, 1), Step::Back);
        assert_eq!(lanes.spread(), 1);
    }
}
