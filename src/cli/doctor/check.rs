//! A check: what was looked at, what was found, and what mends it.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Ok,
    /// Works, and could be better.
    Warn,
    Fail,
    /// Cannot be looked at, for a reason that another check tells.
    Skip,
}

impl Verdict {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
            Self::Skip => "skip",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// `database tls`, `rails.kafka topic payments`
    pub(super) check: String,
    pub(super) verdict: Verdict,
    pub(super) found: String,
    /// The line that mends it; every warning and failure has one.
    pub(super) mend: Option<String>,
}

impl Check {
    pub(super) fn ok(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { check: check.into(), verdict: Verdict::Ok, found: found.into(), mend: None }
    }

    pub(super) fn skip(check: impl Into<String>, found: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skip, ..Self::ok(check, found) }
    }

    pub(super) fn warn(
        check: impl Into<String>,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Warn, mend: Some(mend.into()), ..Self::ok(check, found) }
    }

    pub(super) fn fail(
        check: impl Into<String>,
        found: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Fail, ..Self::warn(check, found, mend) }
    }
}
