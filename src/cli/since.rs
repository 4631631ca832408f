//! How long ago: a number and a unit.

/// For clap: `90s`, `30m`, `12h`, `7d`.
pub(super) fn seconds(text: &str) -> Result<u32, String> {
    let wrong = || "it must be a number and a unit, like 90s, 30m, 12h or 7d".to_owned();
    let unit = match text.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        Some('d') => 86_400,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_time_is_a_number_with_a_unit() {
        assert_eq!(
            ["90s", "30m", "12h", "7d"].map(|text| seconds(text).ok()),
            [Some(90), Some(1_800), Some(43_200), Some(604_800)]
        );
        for wrong in ["", "7", "d", "-1d", "7 d", "4294967295d", "7é"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
