//! Compares what a database has with what this binary carries. Pure: no server needed.

use refinery_core::Migration;
use semver::Version;
use serde::Serialize;
use time::format_description::well_known::Rfc3339;

use super::MigrateError;
use super::embedded::TRESTLE_VERSION;

/// How far a database is.
#[derive(Debug, Serialize)]
pub struct Status {
    pub trestle_version: &'static str,
    pub migrations: Vec<MigrationStatus>,
    /// Functions, triggers, views and grants.
    pub code: CodeState,
    /// The trestle that last renewed them.
    pub database_version: Option<String>,
    pub missing_roles: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct MigrationStatus {
    pub version: i32,
    pub name: String,
    pub state: MigrationState,
    pub applied_on: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MigrationState {
    Applied,
    Pending,
    /// Applied, but with contents or a name that this binary does not carry.
    Changed,
    /// Applied by a newer trestle.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeState {
    Current,
    Missing,
    Outdated,
    /// Written by a newer trestle.
    Newer,
}

/// The row of `outbox.schema_code`.
#[derive(Debug)]
pub(super) struct RecordedCode {
    pub(super) fingerprint: String,
    pub(super) trestle_version: String,
}

impl Status {
    pub(super) fn compare(
        embedded: &[Migration],
        applied: &[Migration],
        fingerprint: &str,
        recorded: Option<RecordedCode>,
        missing_roles: Vec<String>,
    ) -> Self {
        let mut migrations: Vec<MigrationStatus> =
            embedded.iter().map(|migration| known(migration, applied)).collect();
        migrations.extend(
            applied
                .iter()
                .filter(|one| embedded.iter().all(|known| known.version() != one.version()))
                .map(|one| describe(one, MigrationState::Unknown, Some(one))),
        );
        migrations.sort_by_key(|migration| migration.version);
        Self {
            trestle_version: TRESTLE_VERSION,
            migrations,
            code: code_state(fingerprint, recorded.as_ref()),
            database_version: recorded.map(|code| code.trestle_version),
            missing_roles,
        }
    }

    /// Nothing would be applied.
    pub fn is_current(&self) -> bool {
        self.code == CodeState::Current
            && self.missing_roles.is_empty()
            && self.migrations.iter().all(|one| one.state == MigrationState::Applied)
    }

    /// Refuses a database that this binary must not touch.
    pub fn check_compatible(&self) -> Result<(), MigrateError> {
        let named = |state| {
            self.migrations.iter().filter(move |one| one.state == state).map(MigrationStatus::label)
        };
        let unknown: Vec<String> = named(MigrationState::Unknown).collect();
        if !unknown.is_empty() || self.code == CodeState::Newer {
            return Err(MigrateError::DatabaseNewer {
                database_version: self.database_version.clone().unwrap_or_else(|| "?".to_owned()),
                own_version: TRESTLE_VERSION,
                unknown: if unknown.is_empty() {
                    "its functions are newer".to_owned()
                } else {
                    format!("unknown here: {}", unknown.join(", "))
                },
            });
        }
        match named(MigrationState::Changed).next() {
            Some(label) => Err(MigrateError::ChangedMigration(label)),
            None => Ok(()),
        }
    }
}

impl MigrationStatus {
    /// As the file is called.
    pub fn label(&self) -> String {
        format!("V{:04}__{}", self.version, self.name)
    }
}

fn known(migration: &Migration, applied: &[Migration]) -> MigrationStatus {
    match applied.iter().find(|one| one.version() == migration.version()) {
        None => describe(migration, MigrationState::Pending, None),
        Some(one) if one == migration => describe(migration, MigrationState::Applied, Some(one)),
        Some(one) => describe(one, MigrationState::Changed, Some(one)),
    }
}

fn describe(
    migration: &Migration,
    state: MigrationState,
    applied: Option<&Migration>,
) -> MigrationStatus {
    MigrationStatus {
        version: migration.version(),
        name: migration.name().to_owned(),
        state,
        applied_on: applied
            .and_then(Migration::applied_on)
            .and_then(|moment| moment.format(&Rfc3339).ok()),
    }
}

fn code_state(fingerprint: &str, recorded: Option<&RecordedCode>) -> CodeState {
    match recorded {
        None => CodeState::Missing,
        Some(code) if code.fingerprint == fingerprint => CodeState::Current,
        Some(code) if is_newer(&code.trestle_version) => CodeState::Newer,
        Some(_) => CodeState::Outdated,
    }
}

/// A version that cannot be read was written by something we do not know: treat it as newer.
fn is_newer(version: &str) -> bool {
    match (Version::parse(version), Version::parse(TRESTLE_VERSION)) {
        (Ok(theirs), Ok(own)) => theirs > own,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(name: &str, sql: &str) -> Migration {
        Migration::unapplied(name, sql).unwrap()
    }

    fn compare(applied: &[Migration], recorded: Option<(&str, &str)>) -> Status {
        let embedded = [migration("V1__a", "x"), migration("V2__b", "y")];
        let recorded = recorded.map(|(fingerprint, version)| RecordedCode {
            fingerprint: fingerprint.to_owned(),
            trestle_version: version.to_owned(),
        });
        Status::compare(&embedded, applied, "same", recorded, Vec::new())
    }

    #[test]
    fn an_empty_database_has_everything_pending() {
        let status = compare(&[], None);
        assert!(!status.is_current());
        assert!(status.check_compatible().is_ok());
        assert!(status.migrations.iter().all(|one| one.state == MigrationState::Pending));
    }

    #[test]
    fn all_applied_with_the_same_fingerprint_is_current_whatever_version_wrote_it() {
        let applied = [migration("V1__a", "x"), migration("V2__b", "y")];
        assert!(compare(&applied, Some(("same", "99.0.0"))).is_current());
    }

    #[test]
    fn a_changed_migration_is_refused() {
        let error = compare(&[migration("V1__a", "other")], None).check_compatible().unwrap_err();
        assert!(matches!(error, MigrateError::ChangedMigration(label) if label == "V0001__a"));
    }

    #[test]
    fn an_unknown_migration_or_newer_code_means_a_newer_database() {
        let newer = compare(&[migration("V3__c", "z")], None).check_compatible();
        assert!(matches!(newer, Err(MigrateError::DatabaseNewer { .. })));
        let newer = compare(&[], Some(("other", "99.0.0"))).check_compatible();
        assert!(matches!(newer, Err(MigrateError::DatabaseNewer { .. })));
        assert!(compare(&[], Some(("other", "0.0.1"))).check_compatible().is_ok());
    }
}
