//! The binary under test.

use assert_cmd::Command;

/// `trestle` with `arguments` on the database that `url` names, and nothing of the tests' own
/// configuration in its environment.
pub(crate) fn trestle(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("trestle"));
    for (name, _) in std::env::vars_os() {
        if ["TRESTLE_", "PG"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command.current_dir(env!("CARGO_TARGET_TMPDIR")).env("DATABASE_URL", url).args(arguments);
    command
}
