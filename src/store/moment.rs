//! A time that the database told.

use std::fmt;
use std::time::SystemTime;

use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// In JSON as RFC 3339; for people to the second, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub SystemTime);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text =
            OffsetDateTime::from(self.0).format(&Rfc3339).map_err(serde::ser::Error::custom)?;
        serializer.serialize_str(&text)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from(self.0);
        let (hour, minute, second) = at.to_hms();
        write!(formatter, "{} {hour:02}:{minute:02}:{second:02}", at.date())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::Moment;

    #[test]
    fn a_moment_is_short_for_people_and_exact_for_programs() {
        let moment = Moment(SystemTime::UNIX_EPOCH + Duration::from_millis(1_800_000_000_250));
        assert_eq!(moment.to_string(), "2027-01-15 08:00:00");
        assert_eq!(serde_json::to_string(&moment).unwrap(), "\"2027-01-15T08:00:00.25Z\"");
    }
}
