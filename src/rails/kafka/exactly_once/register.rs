//! The register: a compacted topic that remembers the last batch of each shard, one partition for each.

use serde::{Deserialize, Serialize};

use crate::delivery::{Batch, Places};

/// The header by which a record is known as part of a batch, when the topics are read again.
pub(super) const HEADER: &str = "trestle_batch";

/// The last record of a batch's transaction: who sees it sees the whole batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) batch: i64,
    /// How many records the batch has.
    pub(super) rows: i32,
    pub(super) epoch: i64,
    /// The last offset of the batch in each partition.
    pub(super) offsets: Places,
}

/// What the header of a record says: `payments/3/57`.
pub(super) fn mark(rail: &str, batch: Batch) -> String {
    format!("{rail}/{}/{}", batch.shard, batch.number)
}

/// The batch of a record, if it is one of this shard.
pub(super) fn read_mark(rail: &str, shard: i16, mark: &[u8]) -> Option<i64> {
    let mark = std::str::from_utf8(mark).ok()?;
    let (of, number) = mark.rsplit_once('/')?;
    let (of_rail, of_shard) = of.rsplit_once('/')?;
    (of_rail == rail && of_shard.parse() == Ok(shard)).then(|| number.parse().ok()).flatten()
}

/// The key of a shard's entries, under which all but the last may be forgotten.
pub(super) fn key(rail: &str, shard: i16) -> String {
    format!("{rail}/{shard}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_its_batch_to_its_own_shard_alone() {
        let mark = mark("pay.in-1", Batch { shard: 3, number: 57 });
        assert_eq!(read_mark("pay.in-1", 3, mark.as_bytes()), Some(57));
        assert_eq!(read_mark("pay.in-1", 4, mark.as_bytes()), None);
        assert_eq!(read_mark("pay", 3, mark.as_bytes()), None);
        for other in ["", "57", "3/57", "pay.in-1/3/x"] {
            assert_eq!(read_mark("pay.in-1", 3, other.as_bytes()), None, "{other}");
        }
    }
}
