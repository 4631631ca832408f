//! The register: a compacted topic that remembers the last batch of each shard, one partition for each.
//!
//! Several databases may deliver on rails of one name, to the same topics and with the same register: each is
//! known by its `transactional_id_prefix`. `scope` is prefix and rail.

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
    /// Where each topic ended before the shard's first record there: for a database that was set back to
    /// before it. Entries that are older than this field have none.
    #[serde(default)]
    pub(super) origin: Places,
}

/// What the batches of one database on one rail are known by: `trestle/payments`. A name of a rail has no
/// slash, so no two are the same.
pub(super) fn scope(prefix: &str, rail: &str) -> String {
    format!("{prefix}/{rail}")
}

/// What the header of a record says: `trestle/payments/3/57`.
pub(super) fn mark(scope: &str, batch: Batch) -> String {
    format!("{scope}/{}/{}", batch.shard, batch.number)
}

/// The batch of a record, if it is one of this shard.
pub(super) fn read_mark(scope: &str, shard: i16, mark: &[u8]) -> Option<i64> {
    let mark = std::str::from_utf8(mark).ok()?;
    let (of, number) = mark.rsplit_once('/')?;
    let (of_scope, of_shard) = of.rsplit_once('/')?;
    (of_scope == scope && of_shard.parse() == Ok(shard)).then(|| number.parse().ok()).flatten()
}

/// The key of a shard's entries, under which all but the last may be forgotten.
pub(super) fn key(scope: &str, shard: i16) -> String {
    format!("{scope}/{shard}")
}

/// The key of the records that announce a shard's batches.
pub(super) fn announcement_key(scope: &str, shard: i16) -> String {
    format!("{}/announced", key(scope, shard))
}

/// A record of the register: nothing if it is another database's or an announcement, and an error if nobody can tell what it
/// says. That is not the same as nothing: it may be the last batch.
pub(super) fn read(
    key: &str,
    record_key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<Option<Entry>, &'static str> {
    let record_key = record_key.and_then(|bytes| std::str::from_utf8(bytes).ok());
    match record_key {
        Some(own) if own == key => value
            .and_then(|bytes| serde_json::from_slice(bytes).ok())
            .map(Some)
            .ok_or("it is no entry of a register"),
        // prefix/rail/shard
        Some(other) if other.splitn(3, '/').count() == 3 => Ok(None),
        _ => Err("its key names no shard of a rail"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_tells_its_batch_to_its_own_shard_alone() {
        let own = scope("a/b", "pay.in-1");
        let mark = mark(&own, Batch { shard: 3, number: 57 });
        assert_eq!(read_mark(&own, 3, mark.as_bytes()), Some(57));
        assert_eq!(read_mark(&own, 4, mark.as_bytes()), None);
        for (prefix, rail) in [("a/b", "pay"), ("a", "pay.in-1"), ("b", "pay.in-1"), ("", "b")] {
            assert_eq!(read_mark(&scope(prefix, rail), 3, mark.as_bytes()), None, "{prefix}");
        }
        for other in ["", "57", "3/57", "pay.in-1/3/57", "a/b/pay.in-1/3/x"] {
            assert_eq!(read_mark(&own, 3, other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn an_entry_is_read_and_one_that_cannot_be_read_is_not_nothing() {
        let (offsets, origin) = (Places::new(), Places::new());
        let entry = Entry { batch: 7, rows: 2, epoch: 1, offsets, origin };
        let value = serde_json::to_vec(&entry).unwrap();
        let own = key(&scope("a", "pay"), 3);
        let told =
            |key: Option<&str>, value: Option<&[u8]>| read(&own, key.map(str::as_bytes), value);
        assert_eq!(told(Some("a/pay/3"), Some(&value)), Ok(Some(entry)));
        assert_eq!(told(Some("b/pay/3"), Some(&value)), Ok(None), "another database's");
        assert_eq!(told(Some("a/pay/4"), Some(b"x")), Ok(None), "another shard's");
        let announced = announcement_key(&scope("a", "pay"), 3);
        assert_eq!(told(Some(&announced), Some(b"7")), Ok(None), "a batch that begins");
        for (key, value) in [
            (Some("a/pay/3"), Some(&b"{}"[..])),
            (Some("a/pay/3"), None),
            (Some("pay/3"), Some(&value)),
            (None, Some(&value)),
        ] {
            assert!(told(key, value).is_err(), "{key:?} {value:?}");
        }
    }
}
