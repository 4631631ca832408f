//! What a span says of an attempt: nothing of the payload, nothing of the participant.

use std::sync::LazyLock;

use opentelemetry::propagation::{Extractor, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceContextExt as _};
use opentelemetry::{Context, InstrumentationScope, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{
    IdGenerator as _, RandomIdGenerator, SpanData, SpanEvents, SpanLinks,
};
use uuid::Uuid;

use crate::delivery::Trace;

static SCOPE: LazyLock<InstrumentationScope> = LazyLock::new(|| {
    InstrumentationScope::builder("trestle").with_version(env!("CARGO_PKG_VERSION")).build()
});

/// An attempt as the ledger has it.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub trace: &'a Trace,
    pub outbox_id: Uuid,
    pub rail: &'a str,
    pub attempt_no: Option<i32>,
    /// `DISPATCHED`, `RETRYABLE` or `FAILED`.
    pub state: &'a str,
    pub error_code: Option<&'a str>,
    /// `topic/partition@offset` on a Kafka rail.
    pub receipt: Option<&'a str>,
}

/// A child of the producer's span. Nothing unless the producer sampled its trace, and said so in a
/// context that is well-formed.
///
/// It is a client's span, because the record carries the producer's context and not this one.
pub(super) fn of(attempt: &Attempt<'_>, to_kafka: bool) -> Option<SpanData> {
    let parent = parent(attempt.trace).filter(SpanContext::is_sampled)?;
    let own = SpanContext::new(
        parent.trace_id(),
        RandomIdGenerator::default().new_span_id(),
        parent.trace_flags(),
        false,
        parent.trace_state().clone(),
    );
    Some(SpanData {
        span_context: own,
        parent_span_id: parent.span_id(),
        parent_span_is_remote: true,
        span_kind: SpanKind::Client,
        name: format!("send {}", attempt.rail).into(),
        start_time: attempt.trace.began_at,
        end_time: attempt.trace.ended_at,
        attributes: attributes(attempt, to_kafka),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: match attempt.error_code {
            Some(code) => Status::error(code.to_owned()),
            None => Status::Unset,
        },
        instrumentation_scope: SCOPE.clone(),
    })
}

fn parent(trace: &Trace) -> Option<SpanContext> {
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &Carried(trace));
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

/// Ours, and those of OpenTelemetry's conventions for messaging where they fit.
fn attributes(attempt: &Attempt<'_>, to_kafka: bool) -> Vec<KeyValue> {
    let id = attempt.outbox_id.to_string();
    let mut attributes = vec![
        KeyValue::new("trestle.outbox_id", id.clone()),
        KeyValue::new("trestle.rail", attempt.rail.to_owned()),
        KeyValue::new("trestle.outcome", attempt.state.to_owned()),
    ];
    attributes
        .extend(attempt.attempt_no.map(|no| KeyValue::new("trestle.attempt_no", i64::from(no))));
    attributes.extend(attempt.error_code.map(|code| KeyValue::new("error.type", code.to_owned())));
    if to_kafka {
        attributes.push(KeyValue::new("messaging.system", "kafka"));
        attributes.push(KeyValue::new("messaging.operation.name", "send"));
        attributes.push(KeyValue::new("messaging.operation.type", "send"));
        attributes.push(KeyValue::new("messaging.message.id", id));
        attributes.extend(attempt.receipt.map(place).into_iter().flatten());
    }
    attributes
}

/// Where a record is: `topic/partition@offset`, or without the offset.
fn place(receipt: &str) -> Vec<KeyValue> {
    let Some((topic, rest)) = receipt.split_once('/') else { return Vec::new() };
    let (partition, offset) = match rest.split_once('@') {
        Some((partition, offset)) => (partition, offset.parse::<i64>().ok()),
        None => (rest, None),
    };
    let mut place = vec![
        KeyValue::new("messaging.destination.name", topic.to_owned()),
        KeyValue::new("messaging.destination.partition.id", partition.to_owned()),
    ];
    place.extend(offset.map(|offset| KeyValue::new("messaging.kafka.offset", offset)));
    place
}

struct Carried<'a>(&'a Trace);

impl Extractor for Carried<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        match key {
            "traceparent" => Some(&self.0.traceparent),
            "tracestate" => self.0.tracestate.as_deref(),
            _ => None,
        }
    }

    fn keys(&self) -> Vec<&str> {
        vec!["traceparent", "tracestate"]
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn trace(traceparent: &str) -> Trace {
        Trace {
            traceparent: traceparent.to_owned(),
            tracestate: Some("vendor=x".to_owned()),
            began_at: SystemTime::UNIX_EPOCH,
            ended_at: SystemTime::UNIX_EPOCH + Duration::from_millis(7),
        }
    }

    fn attempt<'a>(trace: &'a Trace, error_code: Option<&'a str>) -> Attempt<'a> {
        Attempt {
            trace,
            outbox_id: Uuid::from_u128(7),
            rail: "sepa",
            attempt_no: Some(2),
            state: if error_code.is_some() { "RETRYABLE" } else { "DISPATCHED" },
            error_code,
            receipt: Some("payments/3@41"),
        }
    }

    fn texts(span: &SpanData) -> Vec<String> {
        let text = |pair: &KeyValue| format!("{}={}", pair.key, pair.value);
        span.attributes.iter().map(text).collect()
    }

    #[test]
    fn an_attempt_is_a_child_of_the_producers_span() {
        let trace = trace(SAMPLED);
        let span = of(&attempt(&trace, None), true).unwrap();
        let context = &span.span_context;
        assert_eq!(context.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
        assert_ne!(context.span_id(), span.parent_span_id);
        assert_eq!(context.trace_state().header(), "vendor=x");
        assert_eq!(span.name, "send sepa");
        assert_eq!(span.end_time.duration_since(span.start_time).unwrap().as_millis(), 7);
        assert_eq!(
            texts(&span),
            [
                "trestle.outbox_id=00000000-0000-0000-0000-000000000007",
                "trestle.rail=sepa",
                "trestle.outcome=DISPATCHED",
                "trestle.attempt_no=2",
                "messaging.system=kafka",
                "messaging.operation.name=send",
                "messaging.operation.type=send",
                "messaging.message.id=00000000-0000-0000-0000-000000000007",
                "messaging.destination.name=payments",
                "messaging.destination.partition.id=3",
                "messaging.kafka.offset=41",
            ]
        );
    }

    #[test]
    fn a_failure_has_its_code_and_another_rails_receipt_is_the_receivers_own() {
        let trace = trace(SAMPLED);
        let span = of(&attempt(&trace, Some("HTTP_503")), false).unwrap();
        assert_eq!(span.status, Status::error("HTTP_503"));
        let texts = texts(&span);
        assert!(texts.contains(&"error.type=HTTP_503".to_owned()), "{texts:?}");
        assert!(!texts.iter().any(|text| text.contains("payments")), "{texts:?}");
    }

    #[test]
    fn what_was_not_sampled_or_is_no_context_makes_no_span() {
        for traceparent in [
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-ab-cd",
            "hello",
            "",
        ] {
            let trace = trace(traceparent);
            assert!(of(&attempt(&trace, None), true).is_none(), "{traceparent}");
        }
    }

    #[test]
    fn a_record_whose_offset_nobody_knows_has_none() {
        let place: Vec<String> = place("t/2").iter().map(|pair| pair.key.to_string()).collect();
        assert_eq!(place, ["messaging.destination.name", "messaging.destination.partition.id"]);
    }
}
