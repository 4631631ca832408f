//! What `trestle doctor` prints.

use serde::Serialize;

use super::check::{Check, Verdict};
use crate::cli::{CliError, output};

/// What a terminal has at least, less the indentation of a remedy.
const WIDTH: usize = 74;

#[derive(Serialize)]
struct Report<'a> {
    healthy: bool,
    failed: usize,
    warned: usize,
    checks: &'a [Check],
}

/// A check that failed makes the command fail; a warning does not.
pub(super) fn show(checks: &[Check], json: bool) -> Result<(), CliError> {
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (failed, warned) = (count(Verdict::Fail), count(Verdict::Warn));
    if json {
        output::document(&Report { healthy: failed == 0, failed, warned, checks })?;
    } else {
        output::line(&text(checks, failed, warned))?;
    }
    if failed == 0 { Ok(()) } else { Err(CliError::Unhealthy { failed }) }
}

fn text(checks: &[Check], failed: usize, warned: usize) -> String {
    let rows = checks.iter().map(|check| {
        let Check { check, verdict, found, .. } = check;
        [verdict.word().to_owned(), check.clone(), found.clone()]
    });
    let mut lines = vec![output::table_text(["", "CHECK", "FOUND"], rows)];
    for check in checks {
        let Some(mend) = &check.mend else { continue };
        lines.push(String::new());
        let heading = format!("{} {}: to mend it,", check.verdict.word(), check.check);
        lines.extend(output::wrapped(&heading, WIDTH));
        lines.extend(output::wrapped(mend, WIDTH).into_iter().map(|line| format!("  {line}")));
    }
    lines.push(format!("\n{} checks, {failed} failed, {warned} warnings", checks.len()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_fits_eighty_columns_and_a_remedy_follows_the_table() {
        let checks = [
            Check::ok("database", "answers"),
            Check::fail("a check with a rather long name", "word ".repeat(40), "mend ".repeat(40)),
        ];
        let text = text(&checks, 1, 0);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.ends_with("2 checks, 1 failed, 0 warnings"), "{text}");
        assert!(text.contains("to mend it,\n  mend mend"), "{text}");
    }
}
