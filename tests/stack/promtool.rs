//! Prometheus' own judge of rules.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

/// Whether it is content, and what it says. `make test` installs it.
pub(crate) fn promtool<A: AsRef<OsStr>>(folder: &Path, arguments: &[A]) -> (bool, String) {
    let output = Command::new("promtool")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("promtool ({error}): stack/install.sh promtool"));
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(said).unwrap())
}
