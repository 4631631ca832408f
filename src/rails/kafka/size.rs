//! How large a record is for a broker.

use super::headers::Headers;

/// What a batch adds to its records.
const BATCH_OVERHEAD: usize = 61;
/// Attributes, and a timestamp and an offset that are the batch's own.
const RECORD_OVERHEAD: usize = 3;

/// The size of a batch that holds only this record, without compression: what a topic's
/// `max.message.bytes` is compared with. A record that compression would make small enough is
/// measured as it is, because what compression makes of it is known only when it is too late.
pub(super) fn batch_of_one(key: &str, payload: &str, headers: &Headers<'_>) -> usize {
    let headers_size: usize = headers
        .iter()
        .map(|(name, value)| with_length(name.len()) + with_length(value.len()))
        .sum();
    let record = RECORD_OVERHEAD
        + with_length(key.len())
        + with_length(payload.len())
        + varint(headers.len())
        + headers_size;
    BATCH_OVERHEAD + varint(record) + record
}

fn with_length(bytes: usize) -> usize {
    varint(bytes) + bytes
}

/// Bytes of a signed number in base 128: seven bits a byte, one of all bits for the sign.
fn varint(number: usize) -> usize {
    let bits = (usize::BITS - number.leading_zeros() + 1) as usize;
    bits.div_ceil(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_as_many_bytes_as_kafka_gives_them() {
        for (number, bytes) in [(0, 1), (63, 1), (64, 2), (8_191, 2), (8_192, 3), (1_048_576, 4)] {
            assert_eq!(varint(number), bytes, "{number}");
        }
    }

    #[test]
    fn every_part_of_a_record_counts() {
        assert_eq!(batch_of_one("", "", &Vec::new()), 61 + 1 + 3 + 1 + 1 + 1);
        let headers = vec![("ab", "c".into())];
        assert_eq!(batch_of_one("key", "value", &headers), 61 + 1 + 3 + 4 + 6 + 1 + 3 + 2);
    }
}
