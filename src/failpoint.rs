//! Places where a test kills the process, and what else it needs to do in its time.
//!
//! Compiled in only where debug assertions are: a release build has none of it.

/// Dies here, as by `kill -9`, if `TRESTLE_FAILPOINT` names this place (`place@2`: the second time that it comes
/// here); stands still until it is woken if that is `stop:` and this place, once.
#[cfg(debug_assertions)]
pub(crate) fn failpoint(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    static STOPPED: AtomicBool = AtomicBool::new(false);
    static TIMES: AtomicUsize = AtomicUsize::new(0);
    let wanted = WANTED.get_or_init(|| std::env::var("TRESTLE_FAILPOINT").ok()).as_deref();
    let (place, times) = wanted.map_or(("", "1"), |own| own.split_once('@').unwrap_or((own, "1")));
    if place == name && (TIMES.fetch_add(1, Ordering::Relaxed) + 1).to_string() == times {
        // Nothing is flushed, nothing is dropped.
        signal("-9");
        loop {
            std::thread::park();
        }
    }
    let stops = wanted.and_then(|wanted| wanted.strip_prefix("stop:")) == Some(name);
    if stops && !STOPPED.swap(true, Ordering::Relaxed) {
        signal("-STOP");
    }
}

/// It goes to this thread: another that the system may choose would stop the process when it gets to run, and this one
/// would go on until then.
#[cfg(debug_assertions)]
fn signal(signal: &str) {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let id = std::process::id().to_string();
    let id = thread.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or(&id);
    let _ = std::process::Command::new("kill").args([signal, id]).status();
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

/// What lasts so long; in a test that cannot wait for minutes, the part of it that `TRESTLE_HURRY` says.
#[cfg(debug_assertions)]
pub(crate) fn hurried(usual: std::time::Duration) -> std::time::Duration {
    use std::sync::OnceLock;
    static HURRY: OnceLock<u32> = OnceLock::new();
    let asked = || std::env::var("TRESTLE_HURRY").ok().and_then(|times| times.parse().ok());
    usual / (*HURRY.get_or_init(|| asked().unwrap_or(1))).max(1)
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn hurried(usual: std::time::Duration) -> std::time::Duration {
    usual
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
