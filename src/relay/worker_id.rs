//! Who we are.

use uuid::Uuid;

/// Of a random number, in hexadecimal digits: among ten thousand starts of one host with one process number, two are alike
/// once in five million times, and even then each lease has a token of its own. Not more, because every claimed
/// row carries our name, and has to fit where the unclaimed one stood beside it.
const RANDOM_DIGITS: usize = 12;

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
    let random = Uuid::new_v4().simple().to_string();
    format!("{host}-{}-{}", std::process::id(), &random[..RANDOM_DIGITS])
}
