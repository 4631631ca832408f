//! Reads lines of bounded length.

use std::io::{BufRead, Read};

/// Longer than any row that PostgreSQL could take in a batch.
pub(super) const MAX_LINE_BYTES: u64 = 16 * 1024 * 1024;

/// A line without its end, and how many bytes of input it took.
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    pub(super) too_long: bool,
    pub(super) read_bytes: u64,
}

/// The next line, or `None` at the end. Of a line that is too long nothing but that is kept.
pub(super) fn next(input: &mut impl BufRead) -> std::io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let mut read_bytes =
        (&mut *input).take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut bytes)? as u64;
    if read_bytes == 0 {
        return Ok(None);
    }
    let too_long = read_bytes > MAX_LINE_BYTES && bytes.last() != Some(&b'\n');
    if too_long {
        bytes = Vec::new();
        read_bytes += input.skip_until(b'\n')? as u64;
    }
    Ok(Some(Line { bytes, too_long, read_bytes }))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE_BYTES, next};

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
        let mut text = vec![b'x'; MAX_LINE_BYTES as usize + 10];
        text.extend_from_slice(b"\nok");
        let mut input = text.as_slice();
        let long = next(&mut input).unwrap().unwrap();
        assert!(long.too_long && long.bytes.is_empty());
        assert_eq!(long.read_bytes, MAX_LINE_BYTES + 11);
        assert_eq!(next(&mut input).unwrap().unwrap().bytes, b"ok");
        assert!(next(&mut input).unwrap().is_none());
    }
}
