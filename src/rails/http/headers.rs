//! The headers of a request.

use std::time::SystemTime;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::own_headers;
use super::signature::Signer;
use crate::delivery::Row;

/// What is the same for every request of a rail.
pub(super) struct HeaderPlan {
    fixed: HeaderMap,
    idempotency_header: HeaderName,
    idempotency_quoted: bool,
    signer: Signer,
}

impl HeaderPlan {
    /// `authorization` is the whole value of that header.
    pub(super) fn new(
        source: &str,
        authorization: Option<HeaderValue>,
        idempotency_header: HeaderName,
        idempotency_quoted: bool,
        signer: Signer,
    ) -> Self {
        let mut fixed = HeaderMap::new();
        fixed.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        put(&mut fixed, "ce-specversion", "1.0");
        put(&mut fixed, "ce-source", &encode(source));
        if let Some(mut authorization) = authorization {
            authorization.set_sensitive(true);
            fixed.insert(AUTHORIZATION, authorization);
        }
        Self { fixed, idempotency_header, idempotency_quoted, signer }
    }

    /// The headers of one attempt. The producer's own come first, so that ours win.
    pub(super) fn headers(&self, row: &Row, now: SystemTime) -> HeaderMap {
        let mut headers = own_headers::of(row);
        for (name, value) in &self.fixed {
            headers.insert(name, value.clone());
        }
        put_event(&mut headers, row);
        let key = row.rail_key();
        let quoted = if self.idempotency_quoted { format!("\"{key}\"") } else { key.clone() };
        put(&mut headers, self.idempotency_header.clone(), &quoted);
        self.put_signature(&mut headers, &key, row, now);
        headers
    }

    /// The message's id for the receiver is the key that all attempts and replays share, because
    /// receivers recognise a message that comes twice by it.
    fn put_signature(&self, headers: &mut HeaderMap, id: &str, row: &Row, now: SystemTime) {
        let timestamp = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        if let Some(signature) = self.signer.sign(id, timestamp, row.payload.as_bytes()) {
            put(headers, "webhook-id", id);
            put(headers, "webhook-timestamp", &timestamp.to_string());
            put(headers, "webhook-signature", &signature);
        }
    }
}

fn put_event(headers: &mut HeaderMap, row: &Row) {
    put(headers, "ce-id", &row.outbox_id.to_string());
    put(headers, "ce-type", &format!("payment.{}", row.rail_type));
    put(headers, "ce-subject", &encode(&row.participant_id));
    if let Ok(time) = OffsetDateTime::from(row.created_at).format(&Rfc3339) {
        put(headers, "ce-time", &time);
    }
    put(headers, "trestle-sequence-id", &row.sequence_id.to_string());
    put(headers, "trestle-instruction-id", &encode(&row.instruction_id));
    put(headers, "trestle-attempt-no", &row.attempt_no.to_string());
    if let Some(tenant) = row.tenant_id {
        put(headers, "trestle-tenant-id", &tenant.to_string());
    }
}

/// Everything that gets here is printable ASCII.
fn put(headers: &mut HeaderMap, name: impl reqwest::header::IntoHeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

/// Percent-encoding as the HTTP binding of CloudEvents asks for it: blanks, quotes, percent signs
/// and whatever is not printable ASCII.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'%' => encoded.push_str(&format!("%{byte:02X}")),
            0x21..=0x7e => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;

    fn row(headers: &[(&str, &str)]) -> Row {
        Row {
            instruction_id: "order 1".to_owned(),
            participant_id: "Zoë \"50%\"".to_owned(),
            sequence_id: 3,
            rail_type: "ach".to_owned(),
            headers: headers.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect(),
            attempt_no: 2,
            created_at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_250),
            ..Row::example(7)
        }
    }

    fn plan(quoted: bool) -> HeaderPlan {
        let token = Some(HeaderValue::from_static("Bearer hunter2"));
        let name = HeaderName::from_static("idempotency-key");
        HeaderPlan::new("trestle", token, name, quoted, Signer::new(&[]).ok().unwrap())
    }

    fn sent(headers: &[(&str, &str)]) -> HeaderMap {
        plan(false).headers(&row(headers), SystemTime::now())
    }

    #[test]
    fn a_request_says_what_it_carries() {
        let headers = sent(&[]);
        let expected = [
            ("content-type", "application/json"),
            ("ce-id", "00000000-0000-0000-0000-000000000007"),
            ("ce-specversion", "1.0"),
            ("ce-type", "payment.ach"),
            ("ce-source", "trestle"),
            ("ce-time", "2023-11-14T22:13:20.25Z"),
            ("ce-subject", "Zo%C3%AB%20%2250%25%22"),
            ("trestle-sequence-id", "3"),
            ("trestle-instruction-id", "order%201"),
            ("trestle-attempt-no", "2"),
            ("authorization", "Bearer hunter2"),
        ];
        for (name, value) in expected {
            assert_eq!(headers.get(name).unwrap(), value, "{name}");
        }
        assert!(!headers.contains_key("webhook-id"), "nothing is signed without a secret");
    }

    #[test]
    fn the_key_is_the_same_for_every_attempt_and_quoted_where_asked_for() {
        let (first, mut second) = (row(&[]), row(&[]));
        second.attempt_no = 9;
        second.outbox_id = Uuid::from_u128(8);
        let now = SystemTime::now();
        let key = |plan: &HeaderPlan, row: &Row| plan.headers(row, now)["idempotency-key"].clone();
        assert_eq!(key(&plan(false), &first), first.rail_key());
        assert_eq!(key(&plan(false), &first), key(&plan(false), &second));
        assert_eq!(key(&plan(true), &first), format!("\"{}\"", first.rail_key()));
    }

    #[test]
    fn trace_context_and_own_headers_pass_unchanged() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let headers = sent(&[
            ("traceparent", trace),
            ("tracestate", "a=1,b=2"),
            ("X-Own", "v"),
            ("ce-shard", "5"),
        ]);
        assert_eq!(headers["traceparent"], trace);
        assert_eq!(headers["tracestate"], "a=1,b=2");
        assert_eq!(headers["x-own"], "v");
        assert_eq!(headers["ce-shard"], "5");
    }

    #[test]
    fn own_headers_cannot_be_ours_nor_smuggle() {
        let headers = sent(&[
            ("Authorization", "Bearer stolen"),
            ("Content-Length", "0"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "close"),
            ("Host", "elsewhere"),
            ("content-encoding", "gzip"),
            ("CE-ID", "forged"),
            ("idempotency-key", "forged"),
            ("webhook-id", "forged"),
            ("trestle-attempt-no", "1"),
            ("x-split", "a\r\nx-more: b"),
            ("x-unicode", "é"),
            ("not a name", "v"),
            ("", "v"),
        ]);
        let untouched = sent(&[]);
        assert_eq!(headers, untouched);
    }

    #[test]
    fn the_token_is_not_shown_by_debug() {
        assert!(!format!("{:?}", sent(&[])).contains("hunter2"));
    }
}
