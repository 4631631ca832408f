//! The Grafana dashboard and how it gets there. Whether its metrics exist is tested where they are made.

use serde_json::Value;

use crate::project::read;
use crate::promtool::promtool;

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/dashboards/trestle.json")).unwrap()
}

fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().unwrap();
    panels.iter().filter(|panel| panel["type"] != "row").collect()
}

fn queries(dashboard: &Value) -> Vec<String> {
    let targets =
        panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// Recording rules of these queries, as promtool reads them.
fn as_rules(queries: &[String]) -> String {
    let mut rules = "groups:\n- name: dashboard\n  rules:\n".to_owned();
    for query in queries {
        let query = query.replace("$__rate_interval", "1m").replace("$job", "trestle");
        assert!(!query.contains('$'), "a variable that Grafana does not know: {query}");
        let query = Value::String(query);
        rules.push_str(&format!("  - record: query\n    expr: {query}\n"));
    }
    rules
}

fn accepted(queries: &[String]) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.yml"), as_rules(queries)).unwrap();
    promtool(folder.path(), &["check", "rules", "rules.yml"])
}

#[test]
fn promtool_understands_every_query_of_the_dashboard() {
    let queries = queries(&dashboard());
    assert!(queries.len() >= 40, "{}", queries.len());
    let (accepted, said) = accepted(&queries);
    assert!(accepted, "{said}");
}

#[test]
fn a_query_that_prometheus_does_not_understand_would_be_found() {
    for wrong in ["sum(dlq_depth", "sum by job (dlq_depth)", "rate(dlq_depth)"] {
        assert!(!accepted(&[wrong.to_owned()]).0, "{wrong}");
    }
}

#[test]
fn every_panel_has_a_title_an_id_and_a_place_of_its_own() {
    let dashboard = dashboard();
    let mut ids = std::collections::BTreeSet::new();
    let mut taken = std::collections::BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(!title.is_empty() && ids.insert(panel["id"].as_u64().unwrap()), "{title}");
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + w <= 24, "{title}");
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{title} lies on another panel");
        }
    }
}

#[test]
fn every_query_is_about_the_outboxes_that_were_chosen() {
    for query in queries(&dashboard()) {
        let selectors = query.matches('{').count();
        assert_eq!(query.matches("job=~\"$job\"").count(), selectors, "{query}");
        assert!(selectors > 0, "{query}");
    }
}

#[test]
fn grafana_finds_the_dashboard_where_compose_puts_it() {
    let compose = read("docker-compose.yml");
    let provider = read("deploy/grafana/provisioning/dashboards/trestle.yml");
    let folder = "/etc/grafana/dashboards";
    assert!(provider.contains(&format!("path: {folder}\n")), "{provider}");
    assert!(compose.contains(&format!("- ./deploy/grafana/dashboards:{folder}:ro\n")), "{compose}");
    assert!(
        compose.contains(&format!("HOME_DASHBOARD_PATH: {folder}/trestle.json\n")),
        "{compose}"
    );
    let source = read("deploy/grafana/provisioning/datasources/prometheus.yml");
    let variable = source.lines().find_map(|line| line.trim().strip_prefix("url: $")).unwrap();
    assert!(compose.contains(&format!("      {variable}: ")), "{variable}");
}
