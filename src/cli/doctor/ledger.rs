//! The outbox itself: its version, its partitions, the policies in force.

use super::check::Check;
use crate::cli::output::age;
use crate::cli::policies::Difference;
use crate::store::migrate::{Fit, MigrateError, SchemaVersion, Status};
use crate::store::{LedgerHealth, StoreError};

const MIGRATE: &str = "trestle migrate    (as a user who may)";
const REINSTALL: &str = "install trestle anew: this binary is not whole";
const STRAYS: &str = "docs/runbook.md#trestledefaultpartitionnotempty has the lines that move them";
const DAY: i64 = 86_400;
const VERSION: &str = "outbox version";

pub(super) fn schema(status: Result<Status, MigrateError>, has_outbox: bool) -> Check {
    let name = VERSION;
    match status {
        _ if !has_outbox => Check::fail(name, "there is no outbox in this database", MIGRATE),
        Err(error) => Check::fail(name, error.to_string(), remedy(&error)),
        Ok(status) => match status.check_compatible() {
            Err(error) => {
                let version = status.database_version.as_deref().unwrap_or("?");
                Check::fail(name, error.to_string(), format!("use trestle {version} or newer"))
            }
            Ok(()) if status.is_current() => {
                Check::ok(name, format!("that of trestle {}", status.trestle_version))
            }
            Ok(()) => Check::fail(name, "older than this trestle", MIGRATE),
        },
    }
}

/// The line that mends what kept us from finding out.
fn remedy(error: &MigrateError) -> String {
    match error {
        MigrateError::ServerTooOld { .. } => "upgrade the server to PostgreSQL 14 or newer",
        MigrateError::DatabaseNewer { database_version, .. } => {
            return format!("use trestle {database_version} or newer");
        }
        MigrateError::ChangedMigration(_) => {
            "use the trestle that this database was migrated with, or a newer release"
        }
        MigrateError::Older { .. } | MigrateError::NoVersion(_) => MIGRATE,
        MigrateError::MissingRights(missing) => {
            let remedies: Vec<&str> = missing.iter().map(|right| right.remedy.as_str()).collect();
            return remedies.join(" ");
        }
        MigrateError::Script { .. } | MigrateError::Store(_) => {
            "trestle migrate --status    (as a user who may; then look into the server's log)"
        }
        MigrateError::Inconsistent(_) | MigrateError::Embedded(_) => REINSTALL,
    }
    .to_owned()
}

/// For whoever may not read the tables of migrations: what the outbox says of itself. A bridge works
/// with a newer one, as it has to between a migration and its restart.
pub(super) fn told(told: Result<SchemaVersion, StoreError>) -> Result<Check, StoreError> {
    let (name, own) = (VERSION, SchemaVersion::own());
    let (schema, own) = match (told, own) {
        (Ok(schema), Ok(own)) => (schema, own),
        (Err(StoreError::NotMigrated(_)), _) => {
            return Ok(Check::fail(name, "too old to tell its version", MIGRATE));
        }
        (Err(StoreError::Forbidden(_)), _) => {
            return Ok(Check::skip(name, "not for this user to see: see `rights enough`"));
        }
        (Err(error), _) => return Err(error),
        (_, Err(error)) => return Ok(Check::fail(name, error.to_string(), REINSTALL)),
    };
    Ok(match schema.fits(&own) {
        Fit::Same => Check::ok(name, format!("that of trestle {}", own.trestle_version)),
        Fit::Older => Check::fail(name, format!("that of {schema}, and this is {own}"), MIGRATE),
        Fit::Newer => Check::warn(
            name,
            format!("that of {schema}, and this is {own}, which delivers on with it"),
            format!("use trestle {} or newer", schema.trestle_version),
        ),
        Fit::OtherBuild => Check::warn(
            name,
            format!("that of another build of trestle {}", own.trestle_version),
            MIGRATE,
        ),
    })
}

pub(super) fn partitions(health: &LedgerHealth) -> Vec<Check> {
    let name = "outbox partitions";
    let mut checks = Vec::new();
    if !health.strays.is_empty() {
        let found = format!(
            "{} is not empty: upkeep did not run in time, or a clock was wrong",
            health.strays.join(", ")
        );
        checks.push(Check::fail(name, found, STRAYS));
    }
    checks.push(match health.seconds_ahead {
        Some(ahead) if ahead >= DAY => Check::ok(name, format!("made ahead for {}", age(ahead))),
        Some(ahead) => {
            let left = if ahead > 0 { age(ahead) } else { "nothing".to_owned() };
            let found = format!("made ahead for {left}: no bridge does the upkeep");
            Check::warn(name, found, "trestle retention    (or let a bridge run)")
        }
        None => Check::skip(name, "there is no outbox yet"),
    });
    checks
}

pub(super) fn policies(differences: &[Difference]) -> Check {
    let name = "outbox policies";
    let Some(Difference { rail, key, in_force, configured }) = differences.first() else {
        return Check::ok(name, "this configuration's are in force");
    };
    let found = format!("rails.{rail}.{key} is {configured} here, but {in_force} is in force");
    other_policies(found)
}

/// A bridge with other policies than those in force does not start.
pub(super) fn other_policies(found: String) -> Check {
    let mend = "trestle policies --apply --reason '…'    (as an operator), or correct the file";
    Check::fail("outbox policies", found, mend)
}

#[cfg(test)]
mod tests {
    use super::super::check::Verdict;
    use super::*;

    #[test]
    fn a_stray_row_fails_and_a_short_way_ahead_is_told() {
        let health = |strays: &[&str], seconds_ahead| LedgerHealth {
            strays: strays.iter().map(|name| (*name).to_owned()).collect(),
            seconds_ahead,
        };
        let verdicts = |health: LedgerHealth| {
            partitions(&health).iter().map(|check| check.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(health(&[], Some(3 * DAY))), [Verdict::Ok]);
        assert_eq!(verdicts(health(&[], Some(3_600))), [Verdict::Warn]);
        assert_eq!(verdicts(health(&[], Some(-3_600))), [Verdict::Warn]);
        assert_eq!(verdicts(health(&["x"], Some(3 * DAY))), [Verdict::Fail, Verdict::Ok]);
    }

    #[test]
    fn a_bridge_needs_an_outbox_that_is_not_older() {
        let own = SchemaVersion::own().unwrap();
        let other = |migration, trestle_version: &str| SchemaVersion {
            migration,
            fingerprint: "x".to_owned(),
            trestle_version: trestle_version.to_owned(),
        };
        let verdict = |schema| told(Ok(schema)).unwrap().verdict;
        assert_eq!(verdict(own.clone()), Verdict::Ok);
        assert_eq!(verdict(other(own.migration - 1, "99.0.0")), Verdict::Fail);
        assert_eq!(verdict(other(own.migration, "0.0.1")), Verdict::Fail);
        assert_eq!(verdict(other(own.migration + 1, "99.0.0")), Verdict::Warn);
        assert_eq!(verdict(other(own.migration, &own.trestle_version)), Verdict::Warn);
    }

    #[test]
    fn what_keeps_the_version_from_being_known_comes_with_what_mends_it() {
        for (error, mend) in [
            (MigrateError::ServerTooOld { found: "13.2".to_owned() }, "upgrade the server"),
            (MigrateError::ChangedMigration("V1".to_owned()), "use the trestle that"),
            (MigrateError::Store(StoreError::ConnectionLost), "trestle migrate --status"),
            (MigrateError::Embedded("x".to_owned()), "install trestle anew"),
        ] {
            let check = schema(Err(error), true);
            assert!(check.mend.as_ref().unwrap().starts_with(mend), "{check:?}");
        }
    }

    #[test]
    fn a_policy_that_differs_is_named_with_both_values() {
        let difference = Difference {
            rail: "sepa".to_owned(),
            key: "on_failed",
            in_force: "skip".to_owned(),
            configured: "halt".to_owned(),
        };
        let check = policies(&[difference]);
        assert_eq!(check.found, "rails.sepa.on_failed is halt here, but skip is in force");
        assert_eq!(policies(&[]).verdict, Verdict::Ok);
    }
}
