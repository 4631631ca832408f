//! Where a delivered row is in a topic: the ledger's `rail_reference` of a Kafka rail.

use std::fmt;

/// Written as `topic/partition@offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    pub topic: &'a str,
    pub partition: i32,
    /// None where the broker only said that it has the record already.
    pub offset: Option<i64>,
}

impl<'a> Place<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (topic, place) = text.split_once('/')?;
        let (partition, offset) = match place.split_once('@') {
            Some((partition, offset)) => (partition, Some(offset.parse().ok()?)),
            None => (place, None),
        };
        Some(Self { topic, partition: partition.parse().ok()?, offset })
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.topic, self.partition)?;
        match self.offset {
            Some(offset) => write!(formatter, "@{offset}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for text in ["t/2@7", "t.a-b_c/0", "t/11@0"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_another_rail_calls_a_reference_is_no_place() {
        for text in ["", "ledger", "receipt-7", "t/", "t/x", "t/1@", "t/1@x", "https://bank/1"] {
            assert_eq!(Place::parse(text), None, "{text}");
        }
    }
}
