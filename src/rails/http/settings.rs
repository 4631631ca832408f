//! What a rail's configuration means, or what is wrong with it.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

use super::answer::Judge;
use super::headers::HeaderPlan;
use super::own_headers::is_reserved;
use super::pointer::Pointer;
use super::signature::Signer;
use super::wrong;
use crate::config::{ConfigError, HttpRailConfig, Secret};
use crate::delivery::Class;

/// Where the rail sends to.
pub(super) fn url(key: &str, config: &HttpRailConfig) -> Result<Url, ConfigError> {
    let problem = |problem: &str| wrong(key, "url", problem);
    let url: Url = config
        .url
        .parse()
        .map_err(|_| problem("must be a URL such as https://bank.example/payments"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(problem("must begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(problem("must not hold a user or password: use bearer_token"));
    }
    Ok(url)
}

/// The URL as it may be shown: a key in its query may not.
pub(super) fn destination(url: &Url) -> String {
    let mut shown = url.clone();
    shown.set_query(None);
    shown.set_fragment(None);
    shown.into()
}

pub(super) fn header_plan(key: &str, config: &HttpRailConfig) -> Result<HeaderPlan, ConfigError> {
    let signer = Signer::new(&config.signing_secrets)
        .map_err(|(index, problem)| wrong(key, &format!("signing_secrets[{index}]"), problem))?;
    Ok(HeaderPlan::new(
        &config.source,
        config.bearer_token.as_ref().map(|token| authorization(key, token)).transpose()?,
        idempotency_header(key, &config.idempotency_header)?,
        config.idempotency_quoted,
        signer,
    ))
}

fn authorization(key: &str, token: &Secret) -> Result<HeaderValue, ConfigError> {
    let token = token.expose();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong(key, "bearer_token", "must be printable ASCII without blanks"));
    }
    HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| wrong(key, "bearer_token", "cannot be sent in a header"))
}

fn idempotency_header(key: &str, name: &str) -> Result<HeaderName, ConfigError> {
    let problem = |problem: &str| wrong(key, "idempotency_header", problem);
    let name: HeaderName = name.parse().map_err(|_| problem("is not the name of a header"))?;
    if is_reserved(&name) {
        return Err(problem("is a header that has another meaning already"));
    }
    Ok(name)
}

pub(super) fn judge(key: &str, config: &HttpRailConfig) -> Result<Judge, ConfigError> {
    Ok(Judge {
        reference: pointer(key, "reference_pointer", config.reference_pointer.as_deref())?,
        code: pointer(key, "code_pointer", config.code_pointer.as_deref())?,
        codes: codes(key, config)?,
    })
}

fn pointer(key: &str, name: &str, text: Option<&str>) -> Result<Option<Pointer>, ConfigError> {
    let Some(text) = text else { return Ok(None) };
    let pointer = Pointer::parse(text);
    pointer.map(Some).ok_or_else(|| wrong(key, name, "must be a JSON pointer such as /payment/id"))
}

fn codes(key: &str, config: &HttpRailConfig) -> Result<BTreeMap<String, Class>, ConfigError> {
    for code in config.codes.keys() {
        let problem = |problem: &str| wrong(key, &format!("codes.{code}"), problem);
        if code.strip_prefix("CODE_").is_some_and(|value| !value.is_empty()) {
            if config.code_pointer.is_none() {
                return Err(problem(
                    "never matches: set code_pointer to where the answer has its code",
                ));
            }
        } else if !code.strip_prefix("HTTP_").is_some_and(is_status) {
            return Err(problem(
                "must be HTTP_ and a status, or CODE_ and a code of the receiver's",
            ));
        }
    }
    Ok(config.codes.clone())
}

fn is_status(text: &str) -> bool {
    text.len() == 3 && text.parse::<u16>().is_ok_and(|status| (100..=599).contains(&status))
}
