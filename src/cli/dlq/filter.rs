//! Which FAILED rows a command is about.

use crate::store::FailureFilter;

#[derive(Debug, clap::Args)]
pub(super) struct Filter {
    /// Only rows of this rail
    #[arg(long)]
    rail: Option<String>,
    /// Only rows of this participant
    #[arg(long)]
    participant: Option<String>,
    /// Only rows that failed with this code
    #[arg(long, value_name = "CODE")]
    error_code: Option<String>,
    /// Only rows that failed within this time: 90s, 30m, 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    since: Option<u32>,
}

impl Filter {
    /// Nothing was asked for in particular.
    pub(super) fn is_empty(&self) -> bool {
        let Self { rail, participant, error_code, since } = self;
        rail.is_none() && participant.is_none() && error_code.is_none() && since.is_none()
    }

    pub(super) fn open(&self, limit: i64) -> FailureFilter<'_> {
        FailureFilter {
            rail_type: self.rail.as_deref(),
            participant_id: self.participant.as_deref(),
            error_code: self.error_code.as_deref(),
            since_seconds: self.since.map(f64::from),
            limit,
            ..FailureFilter::default()
        }
    }
}

fn seconds(text: &str) -> Result<u32, String> {
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
