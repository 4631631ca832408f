//! The lanes that a topic has, and how far each has come.

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

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
    partition: i32,
    last: i64,
}

/// Lanes by number: a record keeps four bytes of its lane.
#[derive(Default)]
pub(super) struct Lanes {
    known: IndexMap<Box<str>, Lane>,
    /// Lanes that are in other partitions too, and how far they have come there.
    elsewhere: HashMap<(u32, i32), i64>,
    spread: HashSet<u32>,
    name: String,
}

impl Lanes {
    /// The number of a lane, whether it was known or not.
    pub(super) fn number(&mut self, participant_id: &str, rail_type: &str, partition: i32) -> u32 {
        self.name.clear();
        self.name.extend([participant_id, BETWEEN.encode_utf8(&mut [0]), rail_type]);
        let number = match self.known.get_index_of(self.name.as_str()) {
            Some(number) => number,
            None => {
                let lane = Lane { partition, last: i64::MIN };
                self.known.insert_full(self.name.as_str().into(), lane).0
            }
        };
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// The next record of a lane. Order is that of a partition: between two there is none.
    pub(super) fn step(&mut self, number: u32, partition: i32, sequence_id: i64) -> Step {
        let Some((_, lane)) = self.known.get_index_mut(number as usize) else {
            return Step::Forward;
        };
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
        let name = self.known.get_index(number as usize).map_or("", |(name, _)| name);
        name.split_once(BETWEEN).unwrap_or_default()
    }

    /// How many are in more than one partition.
    pub(super) fn spread(&self) -> usize {
        self.spread.len()
    }
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
