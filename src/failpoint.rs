//! Places where a test kills the process.
//!
//! Compiled in only where debug assertions are: a release build has none of it.

/// Dies here, as by `kill -9`, if `TRESTLE_FAILPOINT` names this place.
#[cfg(debug_assertions)]
pub(crate) fn failpoint(name: &str) {
    use std::sync::OnceLock;
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| std::env::var("TRESTLE_FAILPOINT").ok());
    if wanted.as_deref() == Some(name) {
        // Nothing is flushed, nothing is dropped.
        let _ = std::process::Command::new("kill")
            .args(["-9", &std::process::id().to_string()])
            .status();
        loop {
            std::thread::park();
        }
    }
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn failpoint(_name: &str) {}
