//! The headers that a producer stored with a row, as far as they may go along.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::delivery::Row;

/// Names that a producer's own header may not have: they steer the connection, the credentials or
/// the reading of the body. What begins like ours is ours as well.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];
const RESERVED_PREFIXES: &[&str] = &["proxy-", "trestle-", "webhook-"];
/// CloudEvents allows extensions, so only the attributes that are set here are reserved.
const EVENT_ATTRIBUTES: &[&str] =
    &["ce-id", "ce-source", "ce-specversion", "ce-subject", "ce-time", "ce-type"];

/// Whether a header has a meaning here already.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    let name = name.as_str();
    RESERVED.contains(&name)
        || EVENT_ATTRIBUTES.contains(&name)
        || RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Trace context and whatever else the producer stored, unchanged, as far as HTTP can carry it.
pub(super) fn of(row: &Row) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in &row.headers {
        let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value))
        else {
            continue;
        };
        // Bytes beyond ASCII make some receivers refuse the whole request.
        if value.to_str().is_ok() && !is_reserved(&name) {
            headers.append(name, value);
        }
    }
    headers
}
