//! Which cases are to be run.

pub(crate) struct Cases(Vec<String>);

impl Cases {
    /// `cargo bench` passes --bench; every other word names a case to run alone.
    pub(crate) fn asked() -> Self {
        Self(std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect())
    }

    pub(crate) fn runs(&self, case: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|word| case.contains(word.as_str()))
    }
}
