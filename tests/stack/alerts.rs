//! The alert rules, judged by promtool, and whether each is shown to fire, not to fire and to resolve.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::project::{default_port, path, read};
use crate::promtool::promtool;

#[derive(Debug, Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    rules: Vec<Alert>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Alert {
    pub(crate) alert: String,
    expr: String,
    #[serde(rename = "for")]
    _for: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A file of unit tests, as promtool reads it.
#[derive(Debug, Deserialize)]
struct Tests {
    tests: Vec<Case>,
}

#[derive(Debug, Deserialize)]
struct Case {
    alert_rule_test: Vec<Expectation>,
}

#[derive(Debug, Deserialize)]
struct Expectation {
    alertname: String,
    exp_alerts: Vec<serde_yaml_ng::Value>,
}

/// How often an alert is expected so.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shown {
    fires: usize,
    /// Cases in which it never fires.
    stays_silent: usize,
    /// Cases in which it has fired, and does not any more.
    resolves: usize,
}

pub(crate) fn alerts() -> Vec<Alert> {
    let rules: Rules = serde_yaml_ng::from_str(&read("deploy/prometheus/alerts.yml")).unwrap();
    rules.groups.into_iter().flat_map(|group| group.rules).collect()
}

fn test_files() -> Vec<PathBuf> {
    let folder = path("deploy/prometheus/tests").read_dir().unwrap();
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn shown(alert: &str, cases: &[Case]) -> Shown {
    let mut shown = Shown::default();
    for case in cases {
        let steps = case.alert_rule_test.iter().filter(|step| step.alertname == alert);
        let fires: Vec<bool> = steps.map(|step| !step.exp_alerts.is_empty()).collect();
        shown.fires += usize::from(fires.contains(&true));
        shown.stays_silent += usize::from(!fires.is_empty() && !fires.contains(&true));
        shown.resolves += usize::from(fires.windows(2).any(|steps| steps == [true, false]));
    }
    shown
}

fn test_rules(folder: &Path, file: &str) -> (bool, String) {
    promtool(folder, &["test", "rules", file])
}

#[test]
fn promtool_accepts_the_configuration_and_the_rules() {
    let (accepted, said) =
        promtool(&path("deploy/prometheus"), &["check", "config", "prometheus.yml"]);
    assert!(accepted, "{said}");
    assert!(said.contains(&format!("{} rules found", alerts().len())), "{said}");
}

#[test]
fn the_unit_tests_of_the_rules_pass() {
    let mut arguments = vec!["test".to_owned(), "rules".to_owned()];
    arguments.extend(test_files().iter().map(|file| file.display().to_string()));
    let (passed, said) = promtool(&path("deploy/prometheus"), &arguments);
    assert!(passed, "{said}");
    assert_eq!(said.matches("SUCCESS").count(), test_files().len(), "{said}");
}

#[test]
fn another_threshold_would_be_found_by_the_unit_tests() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    let file = "tests/rails.yml";
    let tests = read(&format!("deploy/prometheus/{file}"));
    std::fs::write(folder.path().join(file), tests).unwrap();
    let rules = read("deploy/prometheus/alerts.yml");
    for (rules, passes) in [(rules.replace("> 0.2", "> 0.05"), false), (rules, true)] {
        std::fs::write(folder.path().join("alerts.yml"), rules).unwrap();
        let (passed, said) = test_rules(folder.path(), file);
        assert_eq!(passed, passes, "{said}");
    }
}

#[test]
fn each_alert_is_shown_to_fire_not_to_fire_and_to_resolve() {
    let read = |file: PathBuf| std::fs::read_to_string(file).unwrap();
    let parse = |text: String| serde_yaml_ng::from_str::<Tests>(&text).unwrap().tests;
    let cases: Vec<Case> = test_files().into_iter().map(read).flat_map(parse).collect();
    for Alert { alert, .. } in alerts() {
        let Shown { fires, stays_silent, resolves } = shown(&alert, &cases);
        assert!(fires > 0 && stays_silent > 0 && resolves > 0, "{alert}");
    }
    assert_eq!(shown("NoSuchAlert", &cases), Shown::default());
}

#[test]
fn each_alert_says_how_bad_it_is_and_what_the_figures_are() {
    let alerts = alerts();
    assert!(alerts.len() >= 14);
    for Alert { alert, expr, labels, annotations, .. } in &alerts {
        assert!(alert.starts_with("Trestle"), "{alert}");
        assert!(matches!(labels["severity"].as_str(), "critical" | "warning"), "{alert}");
        assert!(!annotations["summary"].is_empty(), "{alert}");
        let description = &annotations["description"];
        let figure = description.contains("$value") || expr.contains("up{");
        assert!(figure && description.contains("$labels."), "{alert}: {description}");
    }
}

#[test]
fn prometheus_scrapes_the_bridge_of_make_up() {
    let target = format!("- targets: [\"127.0.0.1:{}\"]", default_port("ADMIN_PORT"));
    let configuration = read("deploy/prometheus/prometheus.yml");
    assert!(configuration.lines().any(|line| line.trim() == target), "{target}");
}
