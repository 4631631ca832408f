//! The Makefile and CI.

use std::process::Command;

use crate::project::{read, root};

/// The names before a colon at the start of a line, special ones aside.
fn targets(makefile: &str) -> Vec<&str> {
    makefile
        .lines()
        .filter(|line| !line.starts_with(['\t', '#', '.']))
        .filter_map(|line| line.split_once(':'))
        .filter(|(_, after)| !after.starts_with('='))
        .map(|(target, _)| target.trim())
        .collect()
}

/// What `make help` prints: a target and what it is for, on each line.
fn help(makefile: &str) -> Vec<(String, String)> {
    // These tests run under make themselves, and a make under make says more.
    let output = Command::new("make")
        .args(["-f", makefile, "help"])
        .current_dir(root())
        .env_remove("MAKELEVEL")
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = |line: &str| {
        let line = line.trim().strip_prefix("make ").expect("each line shows a command").to_owned();
        let (target, what) = line.split_once(' ').expect("and says what it is for");
        (target.to_owned(), what.trim().to_owned())
    };
    String::from_utf8(output.stdout).unwrap().lines().map(words).collect()
}

#[test]
fn make_help_lists_every_target_and_what_it_is_for() {
    let makefile = read("Makefile");
    let listed = help("Makefile");
    let names: Vec<&str> = listed.iter().map(|(target, _)| target.as_str()).collect();
    assert_eq!(names, targets(&makefile));
    assert!(listed.iter().all(|(_, what)| what.len() > 5), "{listed:?}");
}

#[test]
fn a_target_without_a_comment_would_be_missing_from_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let makefile = read("Makefile").replace("psql: ## ", "psql: # ");
    let path = folder.path().join("Makefile");
    std::fs::write(&path, &makefile).unwrap();
    let names: Vec<String> =
        help(path.to_str().unwrap()).into_iter().map(|(target, _)| target).collect();
    assert_ne!(names, targets(&makefile));
}

#[test]
fn every_target_is_phony_so_that_a_file_of_its_name_does_not_stop_it() {
    let makefile = read("Makefile");
    let phony = makefile.lines().find_map(|line| line.strip_prefix(".PHONY:")).unwrap();
    let phony: Vec<&str> = phony.split_whitespace().collect();
    assert_eq!(phony, targets(&makefile));
}

#[test]
fn every_script_that_a_target_calls_is_there_and_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let makefile = read("Makefile");
    let scripts: Vec<&str> =
        makefile.split_whitespace().filter_map(|word| word.strip_prefix('@')).collect();
    for script in scripts.into_iter().filter(|script| script.starts_with("stack/")) {
        let file = crate::project::path(script);
        let mode = file.metadata().unwrap_or_else(|error| panic!("{script}: {error}"));
        assert!(mode.permissions().mode() & 0o111 != 0, "{script} cannot be run");
    }
}

/// What CI would run: `make` is replaced by a program that prints its arguments. It must know that it is CI, lest it
/// passes without what it could not install.
#[test]
fn ci_runs_make_test_as_ci_whatever_the_current_directory_is() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let make = folder.path().join("make");
    std::fs::write(&make, "#!/bin/sh\necho \"$PWD make $* CI=$CI\"\n").unwrap();
    std::fs::set_permissions(&make, std::fs::Permissions::from_mode(0o755)).unwrap();
    let search = std::env::join_paths(
        std::iter::once(folder.path().to_owned())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let output = Command::new(root().join(".ci/run"))
        .current_dir(folder.path())
        .env("PATH", search.unwrap())
        .env_remove("CI")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let project = root().canonicalize().unwrap();
    assert_eq!(said.trim(), format!("{} make test CI=true", project.display()));
}
