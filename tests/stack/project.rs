//! The files of this project.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn path(name: &str) -> PathBuf {
    root().join(name)
}

pub(crate) fn read(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// `NAME=${NAME:-default}` in the scripts' library.
pub(crate) fn default_port(name: &str) -> String {
    let line = format!("{name}=${{{name}:-");
    let library = read("stack/lib.sh");
    let rest = library.lines().find_map(|found| found.strip_prefix(&line));
    rest.and_then(|rest| rest.strip_suffix('}')).expect("lib.sh has a default").to_owned()
}
