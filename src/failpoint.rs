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

/// Whether `TRESTLE_WITHOUT` names this guard: a test takes it out, to show that it is needed.
#[cfg(debug_assertions)]
pub(crate) fn is_taken_out(guard: &str) -> bool {
    use std::sync::OnceLock;
    static TAKEN_OUT: OnceLock<Option<String>> = OnceLock::new();
    let taken_out = TAKEN_OUT.get_or_init(|| std::env::var("TRESTLE_WITHOUT").ok());
    taken_out.as_deref() == Some(guard)
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn is_taken_out(_guard: &str) -> bool {
    false
}

/// Dies a moment after this place, while whatever follows is under way.
#[cfg(debug_assertions)]
pub(crate) fn failpoint_soon(name: &'static str) {
    if std::env::var("TRESTLE_FAILPOINT").is_ok_and(|wanted| wanted == name) {
        // Somewhere within the two milliseconds that a commit takes, another time each time.
        let micros = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| u64::from(now.subsec_nanos()) / 100 % 2_000);
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_micros(micros));
            failpoint(name);
        });
    }
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn failpoint_soon(_name: &'static str) {}
