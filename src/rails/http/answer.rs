//! What a receiver's answer means for a row.

use std::collections::BTreeMap;
use std::time::SystemTime;

use reqwest::StatusCode;
use serde_json::value::RawValue;

use super::pointer::Pointer;
use super::retry_after;
use super::status::{Verdict, verdict};
use crate::delivery::{Class, Failure, Outcome};

/// As much of an answer as is read. What is beyond is dropped, and the connection with it.
const MAX_BYTES: usize = 64 * 1024;

/// What some receivers put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An answer that has arrived.
pub(super) struct Answer {
    status: StatusCode,
    retry_after: Option<String>,
    body: Body,
}

enum Body {
    Empty,
    Json(Box<RawValue>),
    /// Longer than what is read, or not JSON.
    Unreadable,
}

impl Answer {
    /// Reads an answer up to its bound. One that breaks off before its end is an error.
    pub(super) async fn read(mut response: reqwest::Response) -> Result<Self, reqwest::Error> {
        let retry_after = response.headers().get(reqwest::header::RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let mut answer = Self { status: response.status(), retry_after, body: Body::Unreadable };
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Ok(answer);
            }
            body.extend_from_slice(&chunk);
        }
        answer.body = Body::parse(&body);
        Ok(answer)
    }

    fn json(&self) -> Option<&RawValue> {
        match &self.body {
            Body::Json(json) => Some(json),
            Body::Empty | Body::Unreadable => None,
        }
    }
}

impl Body {
    fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes).trim_ascii();
        if bytes.is_empty() {
            return Self::Empty;
        }
        RawValue::from_string(text(bytes)).map_or(Self::Unreadable, Self::Json)
    }
}

/// What is not UTF-8 is most likely ISO-8859-1, in which every byte is a character; and whatever it is, the
/// ASCII in it, where JSON has its structure and receivers their codes, stays as it was.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Decides what an answer means, by status and by the receiver's own code.
pub(super) struct Judge {
    /// `HTTP_409` or `CODE_AC04`, and the class that the user gives it.
    pub(super) codes: BTreeMap<String, Class>,
    pub(super) reference: Option<Pointer>,
    pub(super) code: Option<Pointer>,
}

impl Judge {
    /// The receiver's own code wins over the status, and the configuration over our table.
    pub(super) fn outcome(&self, answer: &Answer, now: SystemTime) -> Outcome {
        let json = answer.json();
        let find = |pointer: &Option<Pointer>| pointer.as_ref()?.find(json?);
        let rail_code = find(&self.code);
        let by_status = format!("HTTP_{}", answer.status.as_u16());
        let by_code = rail_code.as_ref().map(|code| format!("CODE_{code}"));
        let (error_code, class) =
            match by_code.and_then(|code| Some((self.codes.get(&code)?, code))) {
                Some((class, code)) => (code, *class),
                None => match self.by_status(&by_status, answer.status) {
                    Verdict::Delivered if self.may_miss_a_refusal(answer) => {
                        return Outcome::Retry(unreadable(answer.status));
                    }
                    Verdict::Delivered => {
                        return Outcome::Delivered { reference: find(&self.reference), rail_code };
                    }
                    Verdict::Failed(class) => (by_status, class),
                },
            };
        let failure = Failure {
            error_code,
            message: message(answer.status),
            rail_code,
            retry_after: answer
                .retry_after
                .as_deref()
                .and_then(|value| retry_after::parse(value, now)),
            answered: speaks_for_itself(answer.status),
        };
        Outcome::failed(class, failure, true)
    }

    /// Whether an answer that says something may have said, where we could not read it, what the
    /// configuration has a class for.
    fn may_miss_a_refusal(&self, answer: &Answer) -> bool {
        let has_classes = || self.codes.keys().any(|code| code.starts_with("CODE_"));
        matches!(answer.body, Body::Unreadable) && self.code.is_some() && has_classes()
    }

    fn by_status(&self, key: &str, status: StatusCode) -> Verdict {
        self.codes
            .get(key)
            .map_or_else(|| verdict(status.as_u16()), |class| Verdict::Failed(*class))
    }
}

/// Whether the receiver itself looked at the row: a gateway that says in its stead that it never
/// answered is no sign that somebody is there.
fn speaks_for_itself(status: StatusCode) -> bool {
    !matches!(status.as_u16(), 408 | 504 | 520..=524)
}

/// The row may have been paid or refused: it comes again with the same key, in sight of an operator.
fn unreadable(status: StatusCode) -> Failure {
    let message = format!(
        "{}, but code_pointer finds nothing in what it sent: that is not JSON, or longer than {} KiB. It has to \
         answer in plain JSON, without Content-Encoding, or with an empty body; if it never sends a code, \
         take code_pointer and the CODE_ entries of codes out of the configuration",
        message(status),
        MAX_BYTES / 1024
    );
    Failure { answered: true, ..Failure::new("HTTP_ANSWER_UNREADABLE", message) }
}

/// Nothing of the answer itself: it may repeat the payload.
fn message(status: StatusCode) -> String {
    let known = status.canonical_reason().map(|reason| format!(" ({reason})")).unwrap_or_default();
    if status.is_redirection() {
        return format!(
            "the receiver answered {}{known}: redirects are not followed",
            status.as_u16()
        );
    }
    format!("the receiver answered {}{known}", status.as_u16())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn judge(codes: &[(&str, Class)]) -> Judge {
        Judge {
            codes: codes.iter().map(|(code, class)| ((*code).to_owned(), *class)).collect(),
            reference: Pointer::parse("/id"),
            code: Pointer::parse("/error/code"),
        }
    }

    fn answer(status: u16, body: &str) -> Answer {
        let status = StatusCode::from_u16(status).unwrap();
        Answer { status, retry_after: None, body: Body::parse(body.as_bytes()) }
    }

    fn outcome(codes: &[(&str, Class)], status: u16, body: &str) -> Outcome {
        judge(codes).outcome(&answer(status, body), SystemTime::now())
    }

    fn refused(error_code: &str, message: &str, rail_code: Option<&str>) -> Outcome {
        let mut failure = Failure::new(error_code, message);
        failure.rail_code = rail_code.map(str::to_owned);
        failure.answered = true;
        Outcome::Refused(failure)
    }

    #[test]
    fn reference_and_code_are_taken_from_the_answer() {
        let delivered =
            outcome(&[], 201, r#"{"id": 20000000000000000001, "error": {"code": "OK"}}"#);
        let expected = Outcome::Delivered {
            reference: Some("20000000000000000001".to_owned()),
            rail_code: Some("OK".to_owned()),
        };
        assert_eq!(delivered, expected);
    }

    #[test]
    fn an_answer_that_is_no_json_or_too_long_still_has_a_status() {
        let none = Outcome::Delivered { reference: None, rail_code: None };
        assert_eq!(outcome(&[], 200, "<html>"), none);
        assert_eq!(outcome(&[], 204, ""), none);
        let cut = Answer { body: Body::Unreadable, ..answer(200, "") };
        assert_eq!(judge(&[]).outcome(&cut, SystemTime::now()), none);
    }

    #[test]
    fn a_code_is_found_behind_a_byte_order_mark_and_in_another_encoding() {
        let codes = [("CODE_AC04", Class::Terminal), ("CODE_GESCHÜTZT", Class::Terminal)];
        let refused = |body: &[u8]| {
            let answer = Answer { body: Body::parse(body), ..answer(200, "") };
            matches!(judge(&codes).outcome(&answer, SystemTime::now()), Outcome::Refused(_))
        };
        assert!(refused(b"\xef\xbb\xbf{\"error\": {\"code\": \"AC04\"}}\r\n"));
        assert!(refused(
            b"{\"text\": \"gesperrt f\xfcr Z\xfcrich\", \"error\": {\"code\": \"AC04\"}}"
        ));
        assert!(refused(b"{\"error\": {\"code\": \"GESCH\xdcTZT\"}}"));
    }

    #[test]
    fn a_2xx_that_cannot_be_read_is_in_doubt_where_a_code_could_have_refused_the_row() {
        let codes = [("CODE_AC04", Class::Terminal)];
        let coded = Answer { body: Body::parse(b"\x1f\x8b\x08\x00"), ..answer(200, "") };
        let cut = Answer { body: Body::Unreadable, ..answer(200, "") };
        for unread in [coded, cut, answer(202, "<html>"), answer(200, "OK")] {
            let outcome = judge(&codes).outcome(&unread, SystemTime::now());
            let Outcome::Retry(failure) = outcome else { panic!("{outcome:?}") };
            assert_eq!(failure.error_code, "HTTP_ANSWER_UNREADABLE");
            assert!(failure.answered, "somebody is there");
        }
        let read = ["", "\u{feff} \r\n", "{}", "[]", r#"{"error": {"code": "OK"}}"#];
        for body in read {
            let outcome = outcome(&codes, 200, body);
            assert!(matches!(outcome, Outcome::Delivered { .. }), "{body}: {outcome:?}");
        }
        let by_status = outcome(&[("HTTP_409", Class::Terminal)], 200, "OK");
        assert!(matches!(by_status, Outcome::Delivered { .. }), "no code has a class");
    }

    #[test]
    fn the_message_has_nothing_of_the_answer() {
        let expected =
            refused("HTTP_422", "the receiver answered 422 (Unprocessable Entity)", Some("AC04"));
        assert_eq!(outcome(&[], 422, r#"{"iban": "DE00", "error": {"code": "AC04"}}"#), expected);
    }

    #[test]
    fn a_redirect_says_that_it_is_not_followed() {
        let Outcome::Unavailable { failure, maybe_sent: true } = outcome(&[], 302, "") else {
            panic!("it is about every message");
        };
        assert_eq!(failure.error_code, "HTTP_302");
        let expected = "the receiver answered 302 (Found): redirects are not followed";
        assert_eq!(failure.message, expected);
    }

    #[test]
    fn the_configuration_wins_over_the_table() {
        let codes = [("HTTP_422", Class::Retryable), ("HTTP_202", Class::Unavailable)];
        assert!(matches!(outcome(&codes, 422, ""), Outcome::Retry(_)));
        assert!(matches!(outcome(&codes, 202, ""), Outcome::Unavailable { maybe_sent: true, .. }));
    }

    #[test]
    fn the_receivers_own_code_wins_over_the_status() {
        let codes = [("HTTP_200", Class::Retryable), ("CODE_AC04", Class::Terminal)];
        let expected = refused("CODE_AC04", "the receiver answered 200 (OK)", Some("AC04"));
        assert_eq!(outcome(&codes, 200, r#"{"error": {"code": "AC04"}}"#), expected);
        assert!(matches!(outcome(&codes, 200, r#"{"error": {"code": "XX"}}"#), Outcome::Retry(_)));
    }

    #[test]
    fn retry_after_is_passed_on() {
        let busy = Answer { retry_after: Some("9".to_owned()), ..answer(503, "") };
        let outcome = judge(&[]).outcome(&busy, SystemTime::now());
        let Outcome::Unavailable { failure, maybe_sent: true } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!(failure.retry_after, Some(Duration::from_secs(9)));
    }
}
