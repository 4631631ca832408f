//! The alerts and the dashboard that ship with the project ask for metrics, labels and values that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::promql::{Asked, Selector, asked};
use super::tests::{record_everything, rendered};

const RULES: &str = "deploy/prometheus/alerts.yml";
const DASHBOARD: &str = "deploy/grafana/dashboards/trestle.json";

/// What Prometheus adds to every series.
const OF_THE_TARGET: [&str; 2] = ["job", "instance"];
/// Series that Prometheus makes itself.
const OF_PROMETHEUS: [&str; 2] = ["up", "ALERTS"];

/// Each series of a scrape by its name: label and value.
type Exposed = BTreeMap<String, BTreeSet<(String, String)>>;

fn exposed(scrape: &str) -> Exposed {
    let mut exposed = Exposed::new();
    for line in scrape.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let pairs = labels.trim_end_matches('}').split(',').filter_map(|pair| pair.split_once('='));
        let pairs =
            pairs.map(|(label, value)| (label.to_owned(), value.trim_matches('"').to_owned()));
        exposed.entry(name.to_owned()).or_default().extend(pairs);
    }
    exposed
}

/// Every expression in a document, wherever it stands.
fn expressions(document: &Value, found: &mut Vec<String>) {
    match document {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str() {
                    Some(expression) if key == "expr" => found.push(expression.to_owned()),
                    _ => expressions(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| expressions(item, found)),
        _ => {}
    }
}

fn shipped(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    // JSON is YAML too.
    let document: Value = serde_yaml_ng::from_str(&text).unwrap();
    let mut found = Vec::new();
    expressions(&document, &mut found);
    found
}

/// What an expression asks for and nobody exposes.
fn faults(expression: &str, exposed: &Exposed) -> Vec<String> {
    let Asked { selectors, grouped_by } = asked(expression);
    let ours = |selector: &&Selector| !OF_PROMETHEUS.contains(&selector.metric.as_str());
    let selectors: Vec<&Selector> = selectors.iter().filter(ours).collect();
    let has = |label: &str, selector: &&Selector| {
        let pairs = exposed.get(&selector.metric);
        pairs.is_some_and(|pairs| pairs.iter().any(|(known, _)| known == label))
    };
    let mut faults: Vec<String> =
        selectors.iter().flat_map(|selector| faults_of(selector, exposed)).collect();
    for label in grouped_by.iter().filter(|label| !OF_THE_TARGET.contains(&label.as_str())) {
        if !selectors.iter().any(|selector| has(label, selector)) {
            faults.push(format!("no series has the label {label}"));
        }
    }
    faults
}

fn faults_of(selector: &Selector, exposed: &Exposed) -> Vec<String> {
    let Selector { metric, matchers } = selector;
    let Some(pairs) = exposed.get(metric) else { return vec![format!("no metric {metric}")] };
    let matchers = matchers.iter().filter(|(label, _)| !OF_THE_TARGET.contains(&label.as_str()));
    let values =
        matchers.flat_map(|(label, values)| values.split('|').map(move |one| (label, one)));
    let unknown =
        values.filter(|(label, value)| !pairs.contains(&((*label).clone(), (*value).to_owned())));
    unknown.map(|(label, value)| format!("no {metric}{{{label}=\"{value}\"}}")).collect()
}

#[test]
fn alerts_and_dashboard_ask_for_nothing_that_is_not_exposed() {
    let exposed = exposed(&rendered(record_everything));
    for (file, at_least) in [(RULES, 14), (DASHBOARD, 40)] {
        let expressions = shipped(file);
        assert!(expressions.len() >= at_least, "{file}: {} expressions", expressions.len());
        for expression in expressions {
            assert_eq!(faults(&expression, &exposed), Vec::<String>::new(), "{file}: {expression}");
        }
    }
}

#[test]
fn the_dashboard_shows_every_metric() {
    let asked: BTreeSet<String> = shipped(DASHBOARD)
        .iter()
        .flat_map(|expression| asked(expression).selectors)
        .map(|selector| selector.metric)
        .collect();
    let scrape = rendered(record_everything);
    let metrics = scrape.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let shown = |name: &str, kind: &str| match kind {
        "histogram" => asked.contains(&format!("{name}_bucket")),
        _ => asked.contains(name) || name.starts_with("process_"),
    };
    let missing: Vec<&str> =
        metrics.filter(|(name, kind)| !shown(name, kind)).map(|(name, _)| name).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn a_metric_a_label_or_a_value_that_nobody_exposes_would_be_found() {
    let exposed = exposed(&rendered(record_everything));
    for (expression, expected) in [
        ("max(dlq_dept)", "no metric dlq_dept"),
        ("rate(dispatch_latency_ms[5m])", "no metric dispatch_latency_ms"),
        ("attempts_total{status=\"FAILED\"}", "no attempts_total{status=\"FAILED\"}"),
        ("attempts_total{state=~\"FAILED|LOST\"}", "no attempts_total{state=\"LOST\"}"),
        ("max by (participant) (dlq_depth)", "no series has the label participant"),
    ] {
        assert_eq!(faults(expression, &exposed), [expected], "{expression}");
    }
    assert_eq!(faults("sum by (job, le) (dispatch_latency_ms_bucket)", &exposed), [""; 0]);
}
