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

/// The lines of code blocks that call `trestle`, without their comments.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| line.starts_with("trestle "));
    lines.map(|line| line.split(" #").next().unwrap().trim().to_owned()).collect()
}

/// Asks for help behind the arguments of a command: an unknown one before it is an error. A shell reads the quotes.
fn exists(command: &str) -> bool {
    let arguments = command.strip_prefix("trestle ").unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("\"$0\" {arguments} --help")])
        .arg(assert_cmd::cargo::cargo_bin!("trestle"))
        .output();
    output.unwrap().status.success()
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
    let mut count = 0;
    for page in [RUNBOOK, "docs/operate.md", "docs/security.md"] {
        for command in commands(&read(page)) {
            assert!(exists(&command), "{page}: {command}");
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
    for wrong in ["trestle mend", "trestle status --loud"] {
        assert!(!exists(wrong), "{wrong}");
    }
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
