//! The headers of a record.

use std::borrow::Cow;

use rdkafka::message::{Header, OwnedHeaders};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::config::HeaderStyle;
use crate::delivery::Row;

/// What the payload is, whatever the style.
const CONTENT_TYPE: &str = "application/json";

/// As many as we set at most.
const OURS: usize = 14;

/// What the headers begin with that tell of a failure.
const DLQ_PREFIX: &str = "dlq_";

pub(super) type Headers<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// The headers of a row's record, ours first.
///
/// `ce_type`, and Debezium's `eventType`, is `payment.` and the row's rail type. Trace context and
/// the marks of a dead letter are among the row's own headers and pass as they are. Where a row
/// brings a header that we set, ours stands: a consumer trusts it.
pub(super) fn headers<'a>(row: &'a Row, style: HeaderStyle, source: &'a str) -> Headers<'a> {
    with_rows_own(row, style, source, |_| true)
}

/// The headers of a dead letter that was too large with everything: why it failed, and that it is
/// not whole.
pub(super) fn shortened<'a>(row: &'a Row, style: HeaderStyle, source: &'a str) -> Headers<'a> {
    let mut headers = with_rows_own(row, style, source, |name| name.starts_with(DLQ_PREFIX));
    headers.push(("dlq_shortened", "true".into()));
    headers
}

fn with_rows_own<'a>(
    row: &'a Row,
    style: HeaderStyle,
    source: &'a str,
    keeps: impl Fn(&str) -> bool,
) -> Headers<'a> {
    let mut headers = Headers::with_capacity(OURS + row.headers.len());
    add_ours(&mut headers, row);
    if style != HeaderStyle::Debezium {
        add_cloudevents(&mut headers, row, source);
    }
    if style != HeaderStyle::Cloudevents {
        headers.push(("id", row.outbox_id.to_string().into()));
        headers.push(("eventType", event_type(row)));
    }
    let count = headers.len();
    for (name, value) in row.headers.iter().filter(|(name, _)| keeps(name)) {
        if !headers[..count].iter().any(|(taken, _)| taken.eq_ignore_ascii_case(name)) {
            headers.push((name, value.into()));
        }
    }
    headers
}

/// As librdkafka wants them.
pub(super) fn owned(headers: &Headers<'_>) -> OwnedHeaders {
    let start = OwnedHeaders::new_with_capacity(headers.len());
    headers
        .iter()
        .fold(start, |all, (key, value)| all.insert(Header { key, value: Some(value.as_bytes()) }))
}

fn add_ours<'a>(headers: &mut Headers<'a>, row: &'a Row) {
    headers.extend([
        ("content-type", CONTENT_TYPE.into()),
        ("sequence_id", row.sequence_id.to_string().into()),
        ("instruction_id", row.instruction_id.as_str().into()),
        ("idempotency_key", row.idempotency_key.as_str().into()),
        ("attempt_no", row.attempt_no.to_string().into()),
    ]);
    if let Some(tenant) = row.tenant_id {
        headers.push(("tenant_id", tenant.to_string().into()));
    }
}

fn add_cloudevents<'a>(headers: &mut Headers<'a>, row: &'a Row, source: &'a str) {
    headers.extend([
        ("ce_specversion", "1.0".into()),
        ("ce_id", row.outbox_id.to_string().into()),
        ("ce_type", event_type(row)),
        ("ce_source", source.into()),
        ("ce_subject", row.participant_id.as_str().into()),
    ]);
    // A year that RFC 3339 cannot write is no reason to keep a payment back: ce_time is optional.
    if let Ok(time) = OffsetDateTime::from(row.created_at).format(&Rfc3339) {
        headers.push(("ce_time", time.into()));
    }
}

/// What stands before the rail in `ce_type`.
const EVENT_PREFIX: &str = "payment.";

fn event_type(row: &Row) -> Cow<'_, str> {
    format!("{EVENT_PREFIX}{}", row.rail_type).into()
}

/// The rail of a record, by its `ce_type` or `eventType`.
pub(super) fn rail_type(event_type: &str) -> Option<&str> {
    event_type.strip_prefix(EVENT_PREFIX)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use uuid::Uuid;

    use super::*;

    fn value<'a>(headers: &'a Headers<'_>, name: &str) -> Option<&'a str> {
        let mut found = headers.iter().filter(|(key, _)| *key == name);
        let value = found.next().map(|(_, value)| &**value);
        assert!(found.next().is_none(), "{name} stands there twice");
        value
    }

    #[test]
    fn a_record_is_a_cloudevent_in_binary_mode() {
        let mut row = Row::example(7);
        row.created_at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_500_000);
        row.tenant_id = Some(Uuid::from_u128(9));
        let headers = headers(&row, HeaderStyle::Cloudevents, "bank");
        let id = row.outbox_id.to_string();
        for (name, expected) in [
            ("ce_specversion", "1.0"),
            ("ce_id", id.as_str()),
            ("ce_type", "payment.sepa"),
            ("ce_source", "bank"),
            ("ce_subject", "participant"),
            ("ce_time", "1970-01-01T00:00:01.5Z"),
            ("content-type", "application/json"),
            ("sequence_id", "7"),
            ("instruction_id", "instruction-7"),
            ("idempotency_key", "key-7"),
            ("attempt_no", "1"),
            ("tenant_id", "00000000-0000-0000-0000-000000000009"),
        ] {
            assert_eq!(value(&headers, name), Some(expected), "{name}");
        }
        assert_eq!(value(&headers, "id"), None);
    }

    #[test]
    fn debezium_consumers_find_id_and_event_type() {
        let row = Row::example(1);
        let both = headers(&row, HeaderStyle::Both, "bank");
        let alone = headers(&row, HeaderStyle::Debezium, "bank");
        for headers in [&both, &alone] {
            assert_eq!(value(headers, "id"), Some(row.outbox_id.to_string().as_str()));
            assert_eq!(value(headers, "eventType"), Some("payment.sepa"));
        }
        assert!(value(&both, "ce_id").is_some() && value(&alone, "ce_id").is_none());
    }

    #[test]
    fn a_shortened_dead_letter_keeps_why_it_failed_and_not_the_producers_headers() {
        let mut row = Row::example(3);
        for (name, value) in [("note", "long"), ("sequence_id", "9"), ("dlq_reason", "x")] {
            row.headers.push((name.to_owned(), value.to_owned()));
        }
        let headers = shortened(&row, HeaderStyle::Cloudevents, "bank");
        assert_eq!(value(&headers, "dlq_reason"), Some("x"));
        assert_eq!(value(&headers, "dlq_shortened"), Some("true"));
        assert_eq!(value(&headers, "sequence_id"), Some("3"));
        assert_eq!(value(&headers, "note"), None);
    }

    #[test]
    fn the_rows_own_headers_pass_but_never_replace_ours() {
        let mut row = Row::example(3);
        for (name, value) in [
            ("traceparent", "00-1-2-01"),
            ("CE_ID", "forged"),
            ("sequence_id", "9"),
            ("dlq_reason", "x"),
        ] {
            row.headers.push((name.to_owned(), value.to_owned()));
        }
        let headers = headers(&row, HeaderStyle::Cloudevents, "bank");
        assert_eq!(value(&headers, "traceparent"), Some("00-1-2-01"));
        assert_eq!(value(&headers, "dlq_reason"), Some("x"));
        assert_eq!(value(&headers, "sequence_id"), Some("3"));
        assert_eq!(value(&headers, "CE_ID"), None);
    }
}
