//! Which FAILED rows a command is about.

use crate::cli::since::seconds;
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
