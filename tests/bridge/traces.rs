//! The trace of a payment: what goes along with it, and what a collector hears of it.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::json;
use tokio_postgres::Client;

use crate::collector::{Collector, Mood, attribute, hex};
use crate::process::{Bridge, Setup};
use crate::rows::{all_done, count, header, wait_for};
use crate::support::{Database, Topic};
use crate::web::Bank;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const NOT_SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// One row of its own participant with these headers.
async fn enqueue(client: &Client, rail: &str, name: &str, headers: &serde_json::Value) {
    const CALL: &str = "SELECT outbox.enqueue_payment_outbox($2, $2, 'key', $1, \
        '{\"amount\": \"10.00\", \"currency\": \"EUR\", \"destination\": \"s3cret\"}', $3)";
    client.execute(CALL, &[&rail, &name, &headers]).await.unwrap();
}

/// `count` rows whose producer sampled its trace, each of its own participant.
async fn enqueue_sampled(client: &Client, rail: &str, count: i64) {
    const CALL: &str = "SELECT count(*) FROM outbox.enqueue_payment_outbox_batch((
        SELECT jsonb_agg(jsonb_build_object('instruction_id', gen_random_uuid(), 'participant_id', 'p' || g,
          'idempotency_key', 'key', 'rail_type', $1::text, 'headers', jsonb_build_object('traceparent', $2::text),
          'payload', jsonb_build_object('n', g)))
        FROM generate_series(1, $3::int8) AS g))";
    client.query_one(CALL, &[&rail, &SAMPLED, &count]).await.unwrap();
}

fn to(setup: Setup, endpoint: &str) -> Setup {
    setup.and(&format!("[telemetry]\notlp_endpoint = \"{endpoint}\"\n"))
}

/// Ends it as an operator would, and says how long that took.
async fn stop(mut bridge: Bridge) -> (String, Duration) {
    let asked = Instant::now();
    bridge.signal("TERM");
    assert!(bridge.ended().await.success(), "{}", bridge.log());
    (bridge.log(), asked.elapsed())
}

fn of_span(span: &Span, name: &str) -> String {
    attribute(&span.attributes, name).unwrap_or_else(|| panic!("no {name} in {span:?}"))
}

#[tokio::test]
async fn trace_context_and_baggage_reach_both_rails_as_they_were_stored() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let bank = Bank::open(StatusCode::OK).await;
    let client = database.connect().await;
    let contexts = [
        json!({"traceparent": SAMPLED, "tracestate": "a=1,b=2", "baggage": "k=v;p,x=%20y"}),
        json!({"traceparent": NOT_SAMPLED}),
        json!({"traceparent": "cc-future-0-09-more", "tracestate": "a=1,,a=1"}),
        json!({"traceparent": "", "tracestate": "=", "baggage": "no list"}),
        json!({"tracestate": "without=parent"}),
    ];
    for (place, context) in contexts.iter().enumerate() {
        for rail in ["kafka", "bank"] {
            enqueue(&client, rail, &format!("{rail}-{place}"), context).await;
        }
    }
    let kafka = Setup::kafka(&database, &topic).await;
    let rail = kafka.toml.split_once("[rails.kafka]").unwrap().1;
    // With a collector, so that making spans is shown to change nothing.
    let collector = Collector::open(Mood::Takes).await;
    let setup = bank.setup(&database).await.and(&format!("[rails.kafka]{rail}"));
    let _bridge = to(setup, &collector.endpoint).run();
    all_done(&database).await;
    let names = ["traceparent", "tracestate", "baggage"];
    let records = topic.consume(contexts.len()).await;
    let requests = bank.requests();
    for (place, context) in contexts.iter().enumerate() {
        let key = format!("kafka-{place}");
        let record = records.iter().find(|r| r.key.as_deref() == Some(key.as_bytes())).unwrap();
        let subject = format!("bank-{place}");
        let (request, _) = requests.iter().find(|(h, _)| h["ce-subject"] == *subject).unwrap();
        for name in names {
            match context.get(name).map(|value| value.as_str().unwrap()) {
                Some(value) => {
                    assert_eq!(header(record, name), value);
                    assert_eq!(request[name], value);
                }
                None => {
                    assert!(!record.headers.iter().any(|(key, _)| key == name), "{name}");
                    assert!(!request.contains_key(name), "{name}");
                }
            }
        }
    }
}

#[tokio::test]
async fn each_attempt_of_a_sampled_row_is_a_span_below_its_producers() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let collector = Collector::open(Mood::Takes).await;
    let client = database.connect().await;
    enqueue(&client, "kafka", "one", &json!({"traceparent": SAMPLED, "tracestate": "a=1"})).await;
    for (name, context) in [
        ("two", json!({"traceparent": NOT_SAMPLED})),
        ("three", json!({"traceparent": "00-x-y-01"})),
        ("four", json!({})),
    ] {
        enqueue(&client, "kafka", name, &context).await;
    }
    let setup = to(Setup::kafka(&database, &topic).await, &collector.endpoint);
    let bridge = setup
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=payments")
        .env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
        .run();
    all_done(&database).await;
    stop(bridge).await;
    let spans = collector.spans();
    assert_eq!(spans.len(), 1, "{spans:?}");
    let span = &spans[0];
    assert_eq!(hex(&span.trace_id), TRACE);
    assert_eq!(hex(&span.parent_span_id), "b7ad6b7169203331");
    assert_ne!(span.span_id, span.parent_span_id);
    assert_eq!((span.trace_state.as_str(), span.name.as_str()), ("a=1", "send kafka"));
    assert_eq!(span.kind, SpanKind::Client as i32);
    assert!(span.start_time_unix_nano < span.end_time_unix_nano, "{span:?}");
    let id: uuid::Uuid = client
        .query_one(
            "SELECT outbox_id FROM outbox.payment_outbox_attempts WHERE instruction_id = 'one'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    for (name, value) in [
        ("trestle.outbox_id", id.to_string().as_str()),
        ("trestle.rail", "kafka"),
        ("trestle.attempt_no", "1"),
        ("trestle.outcome", "DISPATCHED"),
        ("messaging.system", "kafka"),
        ("messaging.destination.name", topic.name()),
        ("messaging.destination.partition.id", "0"),
    ] {
        assert_eq!(of_span(span, name), value, "{name}");
    }
    let (headers, request) = collector.requests().remove(0);
    assert_eq!(
        (&headers["x-team"], &headers["content-encoding"]),
        (&"payments".parse().unwrap(), &"gzip".parse().unwrap())
    );
    let resource = request.resource_spans[0].resource.clone().unwrap();
    assert_eq!(attribute(&resource.attributes, "service.name").as_deref(), Some("trestle"));
    let environment = attribute(&resource.attributes, "deployment.environment.name");
    assert_eq!(environment.as_deref(), Some("test"));
    let everything = format!("{request:?}");
    assert!(!everything.contains("s3cret") && !everything.contains("\"one\""), "{everything}");
}

#[tokio::test]
async fn a_failed_attempt_is_a_span_with_its_code_and_the_next_one_another() {
    let database = Database::new().await;
    let (bank, collector) =
        (Bank::open(StatusCode::CONFLICT).await, Collector::open(Mood::Takes).await);
    let client = database.connect().await;
    enqueue(&client, "bank", "one", &json!({"traceparent": SAMPLED})).await;
    let bridge = to(bank.setup(&database).await, &collector.endpoint).run();
    wait_for(&database, "SELECT count(*) >= 1 FROM outbox.payment_outbox_attempts").await;
    bank.answer(StatusCode::OK);
    all_done(&database).await;
    stop(bridge).await;
    let spans = collector.spans();
    let told = |span: &Span| {
        let error = attribute(&span.attributes, "error.type").unwrap_or_default();
        (of_span(span, "trestle.attempt_no"), of_span(span, "trestle.outcome"), error)
    };
    let first = ("1".to_owned(), "RETRYABLE".to_owned(), "HTTP_409".to_owned());
    assert_eq!(told(&spans[0]), first);
    assert_eq!(spans[0].status.as_ref().unwrap().code, 2, "an error");
    let last = told(spans.last().unwrap());
    assert_eq!((last.1.as_str(), last.2.as_str()), ("DISPATCHED", ""));
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE));
    assert_eq!(attribute(&spans[0].attributes, "messaging.system"), None);
}

/// More rows than wait for a collector, each in a trace that is sampled.
#[tokio::test]
async fn a_collector_that_hangs_holds_up_neither_deliveries_nor_the_end() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let collector = Collector::open(Mood::Hangs).await;
    let bridge = to(Setup::kafka(&database, &topic).await, &collector.endpoint).run();
    enqueue_sampled(&database.connect().await, "kafka", 5_000).await;
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 5_000);
    assert!(bridge.peak_mb() <= 60, "{} MB", bridge.peak_mb());
    let (log, took) = stop(bridge).await;
    assert!(took < Duration::from_secs(12), "{took:?}: {log}");
    assert!(log.contains("the last spans are lost"), "{log}");
}

#[tokio::test]
async fn a_collector_that_refuses_is_told_once_and_so_is_its_return() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let collector = Collector::open(Mood::Refuses).await;
    let client = database.connect().await;
    let bridge = to(Setup::kafka(&database, &topic).await, &collector.endpoint).run();
    for times in 1..=2 {
        enqueue(&client, "kafka", &format!("{times}"), &json!({"traceparent": SAMPLED})).await;
        collector.asked(times).await;
    }
    collector.becomes(Mood::Takes);
    enqueue(&client, "kafka", "3", &json!({"traceparent": SAMPLED})).await;
    bridge.logged("the collector takes spans again").await;
    assert_eq!(bridge.log().matches("spans cannot be exported").count(), 1, "{}", bridge.log());
    all_done(&database).await;
    assert_eq!(count(&database, "DISPATCHED").await, 3);
}

#[tokio::test]
async fn a_collector_that_is_not_there_costs_nothing_and_drain_still_ends() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    enqueue_sampled(&database.connect().await, "kafka", 100).await;
    let setup = Setup::kafka(&database, &topic).await;
    let setup = setup.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let mut drain = setup.start(&["drain"]);
    assert!(drain.ended().await.success(), "{}", drain.log());
    assert_eq!(drain.log().matches("spans cannot be exported").count(), 1, "{}", drain.log());
    assert_eq!(count(&database, "DISPATCHED").await, 100);
    let mut wrong = setup.env("TRESTLE_TELEMETRY__OTLP_ENDPOINT", "collector").start(&["run"]);
    assert_eq!(wrong.ended().await.code(), Some(2));
    assert!(wrong.log().contains("`telemetry.otlp_endpoint` must be"), "{}", wrong.log());
}
