//! Which role may run which command: docs/operate.md against a database.

use std::collections::BTreeSet;

use crate::operator::COMMANDS;
use crate::scene::run_at_all;
use crate::support::Database;

const PAGE: &str = include_str!("../../docs/operate.md");
const READERS: [&str; 2] = ["symphony_readonly", "symphony_auditor"];
const OTHERS: [&str; 3] = ["symphony_operator", "symphony_executor", "symphony_ingest"];
/// Besides those of an operator.
const MORE: [&[&str]; 3] = [
    &["migrate", "--check"],
    &["migrate", "--status"],
    &["enqueue", "--instruction=i", "--participant=p", "--key=k", "--rail=kafka", "--payload={}"],
];

/// As the page calls it: `lanes pause`, `migrate --check`, `enqueue`.
fn name(command: &[&str]) -> String {
    let words = if ["lanes", "dlq", "migrate"].contains(&command[0]) { 2 } else { 1 };
    command[..words].join(" ")
}

/// What is in backquotes in the rows of the table for this role.
fn documented(role: &str) -> BTreeSet<String> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `symphony_"));
    let cells = rows.filter_map(|row| row.trim_matches('|').split_once(" | "));
    let commands = cells.filter(|(roles, _)| roles.contains(role)).map(|(_, commands)| commands);
    commands
        .flat_map(|commands| commands.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// What this role is not forbidden, of all commands.
async fn permitted(database: &Database, role: &str) -> BTreeSet<String> {
    let url = database.url_as(role).await;
    let may = |command: &&&[&str]| {
        let (shown, _) = run_at_all(&url, command);
        !["lacks a right", "lacks rights"].iter().any(|words| shown.stderr.contains(words))
    };
    COMMANDS.iter().chain(&MORE).filter(may).map(|command| name(command)).collect()
}

#[tokio::test]
async fn each_role_may_run_what_the_page_says_and_nothing_else() {
    let database = Database::new().await;
    let tried: BTreeSet<String> =
        COMMANDS.iter().chain(&MORE).map(|command| name(command)).collect();
    for role in READERS.into_iter().chain(OTHERS) {
        let documented: BTreeSet<String> = &documented(role) & &tried;
        assert_eq!(permitted(&database, role).await, documented, "{role}");
    }
}
