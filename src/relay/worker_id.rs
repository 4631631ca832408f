//! Who we are.

use uuid::Uuid;

/// Unique for each start of a process, so that a restarted worker never takes old leases for its
/// own. The host's name is there for people.
pub(super) fn new() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host
        .trim()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "-._".contains(*c))
        .take(60)
        .collect();
    let host = if host.is_empty() { "worker" } else { &host };
    format!("{host}-{}-{}", std::process::id(), Uuid::new_v4().simple())
}
