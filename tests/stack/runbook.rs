//! docs/runbook.md against the alerts and the commands that exist.

use std::process::Command;

use crate::alerts::alerts;
use crate::project::{path, read};

const RUNBOOK: &str = "docs/runbook.md";

/// What every section of an alert says.
const PARTS: [&str; 4] = ["**Means.**", "**Costs.**", "**Find out.**", "**Resolves.**"];

/// The headings of a page, with the text below each.
fn sections(page: &str) -> Vec<(&str, &str)> {
    let section = |text| str::split_once(text, '\n').map(|(heading, text)| (heading.trim(), text));
    page.split("\n## ").skip(1).filter_map(section).collect()
}

/// As GitHub makes it from a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// Begins what a shell does with a command, or a comment on it.
const NOT_OURS: [&str; 3] = [" > ", " | ", " #"];

/// The lines of code blocks that call `trestle`, with a prompt before them or not, and without what is not
/// for `trestle`.
fn commands(page: &str) -> Vec<&str> {
    let blocks = page.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).map(|line| line.strip_prefix("$ ").unwrap_or(line));
    lines.filter_map(|line| line.strip_prefix("trestle ")).map(ours).collect()
}

fn ours(line: &str) -> &str {
    let end = NOT_OURS.iter().filter_map(|mark| line.find(mark)).min();
    line[..end.unwrap_or(line.len())].trim()
}

/// What is between two quotes is one word. No shell reads it: that would do what the page only shows.
fn words(arguments: &str) -> Vec<&str> {
    let parts = arguments.split('\'').enumerate();
    parts
        .flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        })
        .collect()
}

/// Asks for help behind the arguments of a command: an unknown one before it is an error.
fn exists(arguments: &str) -> bool {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("trestle"));
    command.args(words(arguments)).arg("--help").output().unwrap().status.success()
}

#[test]
fn each_alert_leads_to_its_section_of_the_runbook() {
    let page = read(RUNBOOK);
    let anchors: Vec<String> = sections(&page)
        .iter()
        .map(|(heading, _)| format!("{RUNBOOK}#{}", anchor(heading)))
        .collect();
    for alert in alerts() {
        let leads_to = &alert.annotations["runbook_url"];
        assert!(anchors.contains(leads_to), "{}: {leads_to}", alert.alert);
        assert_eq!(*leads_to, format!("{RUNBOOK}#{}", anchor(&alert.alert)));
    }
    assert_eq!(anchor("Who may do what?"), "who-may-do-what");
}

#[test]
fn each_section_belongs_to_an_alert_in_their_order_and_says_everything() {
    let page = read(RUNBOOK);
    let sections = sections(&page);
    let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
    let alerts: Vec<String> = alerts().into_iter().map(|alert| alert.alert).collect();
    assert_eq!(headings, alerts);
    for (heading, text) in sections {
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| text.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{heading}: {places:?}");
    }
}

#[test]
fn the_severity_of_each_alert_is_told() {
    let page = read(RUNBOOK);
    for alert in alerts() {
        let row = format!(
            "| [{}](#{}) | {} |",
            alert.alert,
            anchor(&alert.alert),
            alert.labels["severity"]
        );
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn every_command_that_it_tells_to_run_exists() {
    for (page, at_least) in [(RUNBOOK, 10), ("docs/operate.md", 15), ("docs/security.md", 0)] {
        let text = read(page);
        let commands = commands(&text);
        for command in &commands {
            assert!(exists(command), "{page}: trestle {command}");
        }
        assert!(commands.len() >= at_least, "{page}: {commands:?}");
    }
    for wrong in ["mend", "status --loud"] {
        assert!(!exists(wrong), "{wrong}");
    }
}

#[test]
fn what_a_shell_would_do_with_a_command_is_left_out() {
    let page = "```sh\n$ trestle completions bash > /etc/x   # or zsh\ntrestle status | head\n\
                trestle lanes skip a k --reason 'is void'\n6 pending\n```\ntrestle run\n";
    let commands = commands(page);
    assert_eq!(commands, ["completions bash", "status", "lanes skip a k --reason 'is void'"]);
    assert_eq!(words(commands[2]), ["lanes", "skip", "a", "k", "--reason", "is void"]);
}

#[test]
fn every_page_that_it_names_is_there() {
    for page in [RUNBOOK, "docs/operate.md", "docs/security.md", "README.md"] {
        let text = read(page);
        let folder = path(page).parent().unwrap().to_owned();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let target = if file.is_empty() { path(page) } else { folder.join(file) };
            assert!(target.exists(), "{page}: {link}");
            if !section.is_empty() {
                let text = std::fs::read_to_string(target).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let found =
                    headings.any(|line| anchor(line.trim_start_matches('#').trim()) == section);
                assert!(found, "{page}: {link}");
            }
        }
    }
}
