//! The lint that says where SQL may live, on this project and on trees with one breach each.

use std::path::Path;
use std::process::Command;

use crate::project::path;

/// Whether the lint is content, and what it says otherwise.
fn lint(folder: Option<&Path>) -> (bool, Vec<String>) {
    let mut command = Command::new(path("stack/lint-sql.sh"));
    command.args(folder);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.success(), said.lines().map(str::to_owned).collect())
}

/// The places, as file:line, at which the lint finds fault with a tree of these files.
fn breaches_in(files: &[(String, String)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (file, text) in files {
        let whole = folder.path().join(file);
        std::fs::create_dir_all(whole.parent().unwrap()).unwrap();
        std::fs::write(whole, text).unwrap();
    }
    let (content, said) = lint(Some(folder.path()));
    assert_eq!(content, said.is_empty(), "it fails when it finds something, and only then");
    let place = |line: String| line.split(": ").next().unwrap().to_owned();
    said.into_iter().map(place).collect()
}

fn breaches(file: &str, text: &str) -> Vec<String> {
    breaches_in(&[(file.to_owned(), text.to_owned())])
}

/// A tree with a file for each of `texts`, named by its index.
fn numbered(folder: &str, ending: &str, texts: &[String]) -> Vec<(String, String)> {
    let file = |(at, text): (usize, &String)| (format!("{folder}/{at:02}.{ending}"), text.clone());
    texts.iter().enumerate().map(file).collect()
}

#[test]
fn this_project_keeps_to_the_rules() {
    assert_eq!(lint(None), (true, vec![]));
}

#[test]
fn a_statement_in_a_string_outside_the_store_is_found_with_file_and_line() {
    let statements = [
        "\"SELECT outbox_id FROM outbox.payment_outbox_pending\"",
        "\"select outbox_id from outbox.payment_outbox_pending\"",
        "\"Select outbox.run_outbox_upkeep()\"",
        "\"select outbox.run_outbox_upkeep()\"",
        "\"INSERT INTO t VALUES (1)\"",
        "\"insert into t values (1)\"",
        "\"UPDATE t SET a = 1\"",
        "\"update outbox.t as x set a = 1\"",
        "\"DELETE FROM t\"",
        "\"delete from t\"",
        "\"TRUNCATE t\"",
        "\"MERGE INTO t USING s ON true\"",
        "r#\"SELECT \"quoted\" FROM t\"#",
        "\"WITH x AS (SELECT 1) SELECT * FROM x\"",
        "\"with x as (select a from t) select 1\"",
    ];
    let code = |statement| format!("fn main() {{\n    let a = 'x';\n    run({statement});\n}}\n");
    let texts = statements.map(code);
    let relay = numbered("src/relay", "rs", &texts);
    let expected: Vec<String> = relay.iter().map(|(file, _)| format!("{file}:3")).collect();
    assert_eq!(breaches_in(&relay), expected);
    assert_eq!(breaches_in(&numbered("src/store", "rs", &texts)), Vec::<String>::new());
}

#[test]
fn a_statement_over_several_lines_is_found_where_it_begins() {
    let statements = [
        ("\"SELECT outbox_id\n        FROM t\"", 2),
        ("\"\n      select outbox_id\n        from t\"", 3),
        ("\"DELETE\n      FROM t\"", 2),
        ("\"delete \\\n      from t\"", 2),
        ("\"UPDATE t\n   SET a = 1\"", 2),
    ];
    let texts =
        statements.map(|(statement, _)| format!("fn main() {{\n    run({statement});\n}}\n"));
    let tree = numbered("src/relay", "rs", &texts);
    let places = tree.iter().zip(statements);
    let expected: Vec<String> =
        places.map(|((file, _), (_, line))| format!("{file}:{line}")).collect();
    assert_eq!(breaches_in(&tree), expected);
}

#[test]
fn english_comments_and_characters_are_not_taken_for_statements() {
    let code = "// SELECT a FROM t\n/* DELETE FROM t */\nfn main() {\n    let quote = '\"';\n    \
        say(\"please update the set of rails, or select another one\");\n    \
        say(\"cannot insert into a full queue\");\n}\n";
    assert_eq!(breaches("src/relay/claim.rs", code), Vec::<String>::new());
}

#[test]
fn a_delete_of_pending_rows_outside_completion_is_found_with_file_and_line() {
    let texts = [
        "DELETE FROM outbox.payment_outbox_pending",
        "delete from outbox.payment_outbox_pending",
        "Delete\n  From outbox.payment_outbox_pending",
        "DELETE FROM ONLY outbox.payment_outbox_pending AS p",
        "DELETE FROM \"outbox\".\"payment_outbox_pending\"",
        "DELETE FROM payment_outbox_pending",
    ]
    .map(|delete| format!("-- a function\nSELECT 1;\n{delete};\n"));
    let tree = numbered("sql/functions", "sql", &texts);
    let expected: Vec<String> = tree.iter().map(|(file, _)| format!("{file}:3")).collect();
    assert_eq!(breaches_in(&tree), expected);
    let completion = "sql/functions/complete_outbox_batch.sql";
    assert_eq!(breaches(completion, &texts[0]), Vec::<String>::new());
}

#[test]
fn other_deletes_and_comments_about_one_are_allowed_in_sql() {
    let code = "-- DELETE FROM outbox.payment_outbox_pending\n\
        /* DELETE FROM outbox.payment_outbox_pending */\n\
        DELETE FROM outbox.payment_outbox_turns;\nDELETE FROM outbox.payment_outbox_pending_x;\n";
    assert_eq!(breaches("sql/functions/sweep.sql", code), Vec::<String>::new());
}

#[test]
fn a_delete_of_pending_rows_that_is_hidden_in_a_string_or_after_a_comment_is_found() {
    let texts = [
        "SELECT '--'; DELETE FROM outbox.payment_outbox_pending;",
        "DELETE FROM /* all of */ outbox.payment_outbox_pending;",
        "DELETE -- all of\nFROM outbox.payment_outbox_pending;",
        "EXECUTE 'DELETE FROM outbox.payment_outbox_pending';",
    ]
    .map(str::to_owned);
    let tree = numbered("sql/functions", "sql", &texts);
    let expected: Vec<String> = tree.iter().map(|(file, _)| format!("{file}:1")).collect();
    assert_eq!(breaches_in(&tree), expected);
}

#[test]
fn the_state_that_does_not_exist_is_found_anywhere_in_any_case() {
    // Spelt so that this file does not contain it.
    let word = ["DISPATCH", "ING"].concat();
    for (file, text) in [
        ("sql/functions/claim.sql", format!("SELECT 1;\n-- {word}\n")),
        ("src/store/claim.rs", format!("fn main() {{}}\n// {}\n", word.to_lowercase())),
        ("src/relay/claim.rs", format!("\nconst STATE: &str = \"{word}\";\n")),
    ] {
        assert_eq!(breaches(file, &text), [format!("{file}:2")]);
    }
}

#[test]
fn every_breach_is_told_not_only_the_first() {
    let code = "fn main() {\n    run(\"SELECT 1\");\n    run(\"DELETE FROM t\");\n}\n";
    let file = "src/relay/claim.rs";
    assert_eq!(breaches(file, code), [format!("{file}:2"), format!("{file}:3")]);
}

#[test]
fn a_tree_without_sources_has_no_breach() {
    assert_eq!(
        breaches("README.md", "DELETE FROM outbox.payment_outbox_pending"),
        Vec::<String>::new()
    );
}
