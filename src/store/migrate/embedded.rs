//! The SQL that this binary carries.

use include_dir::{Dir, include_dir};
use refinery_core::Migration;
use sha2::{Digest, Sha256};

use super::MigrateError;

static SQL: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/sql");

/// Folders that are replaced as a whole, in the order in which they build on each other.
const REPEATABLE_FOLDERS: [&str; 3] = ["functions", "triggers", "views"];
const GRANTS: &str = "grants.sql";
const ROLES: &str = "roles.sql";

/// The version that is recorded next to the fingerprint.
pub(super) const TRESTLE_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file of SQL and its path under `sql/`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Script {
    pub(super) path: &'static str,
    pub(super) sql: &'static str,
}

/// Creates the group roles when they are missing.
pub(super) fn roles() -> Result<Script, MigrateError> {
    script(ROLES)
}

/// The numbered migrations, in order.
pub(super) fn migrations() -> Result<Vec<Migration>, MigrateError> {
    let mut migrations = Vec::new();
    for script in scripts_in("migrations")? {
        let name = script.path.rsplit('/').next().unwrap_or(script.path);
        migrations.push(Migration::unapplied(name.trim_end_matches(".sql"), script.sql)?);
    }
    migrations.sort();
    Ok(migrations)
}

/// Functions, triggers, views and grants, in the order in which they are applied.
pub(super) fn repeatables() -> Result<Vec<Script>, MigrateError> {
    let mut scripts = Vec::new();
    for folder in REPEATABLE_FOLDERS {
        scripts.extend(scripts_in(folder)?);
    }
    scripts.push(script(GRANTS)?);
    Ok(scripts)
}

/// Identifies the repeatable scripts: their names and their contents.
pub(super) fn fingerprint() -> Result<String, MigrateError> {
    Ok(digest(&repeatables()?))
}

/// Identifies all of the SQL, migrations and roles included.
pub fn fingerprint_of_everything() -> Result<String, MigrateError> {
    let mut scripts = vec![roles()?];
    scripts.extend(scripts_in("migrations")?);
    scripts.extend(repeatables()?);
    Ok(digest(&scripts))
}

fn digest(scripts: &[Script]) -> String {
    let mut hasher = Sha256::new();
    for script in scripts {
        // Lengths keep two different lists of files from reading as the same stream of bytes.
        for part in [script.path, script.sql] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn scripts_in(folder: &str) -> Result<Vec<Script>, MigrateError> {
    let Some(dir) = SQL.get_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut scripts = dir
        .files()
        .filter_map(|file| file.path().to_str())
        .filter(|path| path.ends_with(".sql"))
        .map(script)
        .collect::<Result<Vec<_>, _>>()?;
    scripts.sort_by_key(|script| script.path);
    Ok(scripts)
}

fn script(path: &str) -> Result<Script, MigrateError> {
    let missing = || MigrateError::Embedded(path.to_owned());
    let file = SQL.get_file(path).ok_or_else(missing)?;
    Ok(Script {
        path: file.path().to_str().ok_or_else(missing)?,
        sql: file.contents_utf8().ok_or_else(missing)?,
    })
}

#[cfg(test)]
mod tests {
    use super::{Script, digest};

    #[test]
    fn moving_text_from_one_file_to_the_next_changes_the_fingerprint() {
        let one = [Script { path: "a", sql: "xy" }, Script { path: "b", sql: "z" }];
        let other = [Script { path: "a", sql: "x" }, Script { path: "b", sql: "yz" }];
        assert_ne!(digest(&one), digest(&other));
    }

    #[test]
    fn the_embedded_sql_is_complete() {
        super::roles().unwrap();
        assert!(!super::migrations().unwrap().is_empty());
        assert!(!super::repeatables().unwrap().is_empty());
    }
}
