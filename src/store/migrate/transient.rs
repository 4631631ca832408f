//! Races that only another database of the same cluster, or nobody, is to blame for.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::MigrateError;

/// The whole transaction is tried this often.
pub(super) const MAX_ATTEMPTS: u32 = 10;

const BASE_PAUSE_MS: u64 = 50;
const MAX_PAUSE_MS: u64 = 1_000;

/// Roles belong to the cluster, the migration lock to one database: two databases that are
/// migrated at once can meet in the catalogs.
pub(super) fn is_race(error: &MigrateError) -> bool {
    let Some(server) = error.server() else { return false };
    match server.code.as_str() {
        // serialization failure, deadlock, unique violation in a catalog, role exists already
        "40001" | "40P01" | "23505" | "42710" => true,
        // PostgreSQL has no code of its own for this one.
        "XX000" => server.message.contains("tuple concurrently"),
        _ => false,
    }
}

/// Grows with the attempts, and differs between processes so that they do not meet again.
pub(super) fn pause(attempt: u32) -> Duration {
    let ceiling_ms = (BASE_PAUSE_MS << attempt.min(8)).min(MAX_PAUSE_MS);
    let jitter_ms = RandomState::new().hash_one(attempt) % ceiling_ms;
    Duration::from_millis(ceiling_ms / 2 + jitter_ms / 2)
}

#[cfg(test)]
mod tests {
    use super::{MAX_ATTEMPTS, MAX_PAUSE_MS, pause};

    #[test]
    fn a_pause_is_never_longer_than_its_bound() {
        for attempt in 1..=MAX_ATTEMPTS {
            assert!(pause(attempt).as_millis() <= u128::from(MAX_PAUSE_MS));
        }
    }
}
