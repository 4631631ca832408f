//! `trestle doctor` on the collector of traces.

use tokio::net::TcpListener;

use crate::doctor_scene::{Findings, Patient};
use crate::scene::run;
use crate::support::Database;

const CHECK: &str = "telemetry.otlp_endpoint";

async fn examined(endpoint: &str) -> Findings {
    let database = Database::new().await;
    let patient = Patient::new(&database.url_as("symphony_readonly").await);
    let findings =
        patient.and(&format!("[telemetry]\notlp_endpoint = \"{endpoint}\"\n")).examined(0);
    findings.each_wrong_has_its_remedy();
    findings
}

#[tokio::test]
async fn a_collector_is_visited_and_deliveries_do_not_depend_on_it() {
    let collector = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = collector.local_addr().unwrap();
    let findings = examined(&format!("http://{place}")).await;
    assert_eq!(findings.found(CHECK), format!("{place} answers, without TLS"));
    let findings = examined("http://127.0.0.1:1").await;
    assert_eq!(findings.verdict(CHECK), "warn");
    assert!(findings.found(CHECK).contains("127.0.0.1:1 does not answer"));
    let findings = examined("https://no-such-host.invalid:4318").await;
    assert!(findings.found(CHECK).contains("no-such-host.invalid has no address"));
}

#[tokio::test]
async fn an_address_that_is_no_collectors_is_a_wrong_configuration() {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), "[telemetry]\notlp_endpoint = \"collector:4318\"\n").unwrap();
    let arguments = ["--config", file.path().to_str().unwrap(), "doctor"];
    let message = run("postgres://127.0.0.1:1/d", &arguments, 2).stderr;
    assert!(message.contains("`telemetry.otlp_endpoint` must be the address"), "{message}");
}
