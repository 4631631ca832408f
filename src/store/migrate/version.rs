//! What an outbox says of its version to whoever may not read the tables of migrations.

use semver::Version;
use tokio_postgres::Row;

use super::MigrateError;
use super::embedded::{self, TRESTLE_VERSION};
use crate::store::{Store, StoreError, WorkerStore};

const READ: &str =
    "SELECT migration, fingerprint, trestle_version FROM outbox.outbox_schema_version()";

/// The version of an outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaVersion {
    /// The number of its last migration.
    pub migration: i32,
    /// Of its functions, views and grants.
    pub fingerprint: String,
    /// Who wrote them.
    pub trestle_version: String,
}

/// How the version of an outbox and that of a binary go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Same,
    Older,
    Newer,
    /// The same number, but other functions: of another build, nobody knows which came first.
    OtherBuild,
}

impl SchemaVersion {
    /// That of this binary.
    pub fn own() -> Result<Self, MigrateError> {
        Ok(Self {
            migration: embedded::migrations()?.iter().map(|one| one.version()).max().unwrap_or(0),
            fingerprint: embedded::fingerprint()?,
            trestle_version: TRESTLE_VERSION.to_owned(),
        })
    }

    /// How this outbox goes together with a binary.
    pub fn fits(&self, own: &Self) -> Fit {
        // Who wrote a version that cannot be read is newer than we are.
        let version = |text: &str| Version::parse(text).ok();
        match (version(&self.trestle_version), version(&own.trestle_version)) {
            _ if self.migration < own.migration => Fit::Older,
            _ if self.migration > own.migration => Fit::Newer,
            _ if self.fingerprint == own.fingerprint => Fit::Same,
            (Some(theirs), Some(ours)) if theirs < ours => Fit::Older,
            (Some(theirs), Some(ours)) if theirs == ours => Fit::OtherBuild,
            _ => Fit::Newer,
        }
    }

    /// Refuses an outbox that is older than this binary. With a newer one a worker works, because schemas
    /// are migrated first and workers restarted afterwards, one by one: if it is another than this
    /// binary's, it is returned.
    pub fn check_for_worker(told: Result<Self, StoreError>) -> Result<Option<Self>, MigrateError> {
        let (schema, fit) = not_older(told)?;
        Ok((fit != Fit::Same).then_some(schema))
    }

    /// Refuses an outbox that is older or newer than this binary, and says whether it is this binary's.
    pub fn is_current(told: Result<Self, StoreError>) -> Result<bool, MigrateError> {
        match not_older(told)? {
            (schema, Fit::Newer) => Err(MigrateError::DatabaseNewer {
                unknown: format!("migration {}", schema.migration),
                database_version: schema.trestle_version,
                own_version: TRESTLE_VERSION,
            }),
            (_, fit) => Ok(fit == Fit::Same),
        }
    }
}

fn not_older(
    told: Result<SchemaVersion, StoreError>,
) -> Result<(SchemaVersion, Fit), MigrateError> {
    let own = SchemaVersion::own()?;
    let schema = match told {
        Err(StoreError::NotMigrated(_)) => return Err(MigrateError::NoVersion(own)),
        told => told?,
    };
    match schema.fits(&own) {
        Fit::Older => Err(MigrateError::Older { schema, own }),
        fit => Ok((schema, fit)),
    }
}

impl std::fmt::Display for SchemaVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "trestle {} (migration {})", self.trestle_version, self.migration)
    }
}

impl Store {
    /// The version of the outbox.
    pub async fn schema_version(&self) -> Result<SchemaVersion, StoreError> {
        read(&self.client.query_typed(READ, &[]).await?)
    }
}

impl WorkerStore {
    /// The version of the outbox.
    pub async fn schema_version(&self) -> Result<SchemaVersion, StoreError> {
        read(&self.query(READ, &[]).await?)
    }
}

fn read(rows: &[Row]) -> Result<SchemaVersion, StoreError> {
    let row = rows.first().ok_or_else(|| StoreError::Protocol("no schema version".to_owned()))?;
    Ok(SchemaVersion {
        migration: row.try_get(0)?,
        fingerprint: row.try_get(1)?,
        trestle_version: row.try_get(2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(migration: i32, fingerprint: &str, trestle_version: &str) -> SchemaVersion {
        let (fingerprint, trestle_version) = (fingerprint.to_owned(), trestle_version.to_owned());
        SchemaVersion { migration, fingerprint, trestle_version }
    }

    #[test]
    fn tables_count_first_then_functions_and_then_who_wrote_them() {
        let own = schema(4, "a", "1.2.0");
        for (theirs, fit) in [
            (schema(4, "a", "1.2.0"), Fit::Same),
            (schema(4, "a", "1.1.0"), Fit::Same),
            (schema(3, "a", "9.0.0"), Fit::Older),
            (schema(5, "a", "1.0.0"), Fit::Newer),
            (schema(4, "b", "1.1.9"), Fit::Older),
            (schema(4, "b", "1.10.0"), Fit::Newer),
            (schema(4, "b", "1.2.0"), Fit::OtherBuild),
            (schema(4, "b", "of my own"), Fit::Newer),
        ] {
            assert_eq!(theirs.fits(&own), fit, "{theirs:?}");
        }
    }

    #[test]
    fn this_binary_knows_its_own_version() {
        let own = SchemaVersion::own().unwrap();
        assert_eq!(own.fits(&own), Fit::Same);
        assert_eq!(SchemaVersion::check_for_worker(Ok(own)).unwrap(), None);
    }
}
