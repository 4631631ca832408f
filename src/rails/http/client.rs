//! The client that a rail's requests go through.

use std::path::Path;
use std::time::Duration;

use reqwest::{Certificate, Client, ClientBuilder, Identity, Url};

use super::wrong;
use crate::config::{ConfigError, HttpRailConfig};

/// The longest that a connection may take, so that a host that says nothing is told apart from a
/// request that may have been read. Shorter where the whole request has little time.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);
/// Shorter than most receivers keep a quiet connection: a request that meets a closing one is in
/// doubt.
const IDLE_CONNECTION: Duration = Duration::from_secs(10);
/// A connection that carries several requests must not hold up all of them when its peer is gone.
const HTTP2_PING: Duration = Duration::from_secs(10);

/// One client with its pool. `key` is the rail's place in the configuration.
pub(super) fn build(key: &str, url: &Url, config: &HttpRailConfig) -> Result<Client, ConfigError> {
    let authorities = authorities(key, url, config)?;
    let identity = identity(key, url, config)?;
    let trusting = || trust(base(config), url, authorities.as_deref());
    let client = trusting().build();
    let Some(identity) = identity else {
        let culprit = if config.ca_file.is_some() { "ca_file" } else { "url" };
        return client.map_err(|error| wrong(key, culprit, reason(&error)));
    };
    client.map_err(|error| wrong(key, "ca_file", reason(&error)))?;
    trusting()
        .identity(identity)
        .build()
        .map_err(|error| wrong(key, "client_certificate_file", reason(&error)))
}

fn base(config: &HttpRailConfig) -> ClientBuilder {
    let timeout = Duration::from_secs(config.timeout_seconds);
    Client::builder()
        .user_agent(concat!("trestle/", env!("CARGO_PKG_VERSION")))
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        // Whether a row is sent again is the ledger's decision.
        .retry(reqwest::retry::never())
        .connect_timeout(LONGEST_CONNECT.min(timeout / 2))
        .pool_idle_timeout(IDLE_CONNECTION)
        .pool_max_idle_per_host(config.concurrency)
        .http2_keep_alive_interval(HTTP2_PING)
        .http2_keep_alive_timeout(HTTP2_PING)
}

/// A private authority stands instead of the public ones. Without TLS nobody is trusted, so that a
/// machine without certificates can still speak plain HTTP.
fn trust(builder: ClientBuilder, url: &Url, authorities: Option<&[Certificate]>) -> ClientBuilder {
    match authorities {
        Some(authorities) => builder.tls_certs_only(authorities.iter().cloned()),
        None if url.scheme() == "http" => builder.tls_certs_only([]),
        None => builder,
    }
}

fn authorities(
    key: &str,
    url: &Url,
    config: &HttpRailConfig,
) -> Result<Option<Vec<Certificate>>, ConfigError> {
    let Some(file) = &config.ca_file else { return Ok(None) };
    let pem = read(key, "ca_file", url, file)?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(Some(certificates)),
        _ => Err(wrong(key, "ca_file", "names a file that holds no certificate in PEM")),
    }
}

fn identity(
    key: &str,
    url: &Url,
    config: &HttpRailConfig,
) -> Result<Option<Identity>, ConfigError> {
    let (certificate, private) = match (&config.client_certificate_file, &config.client_key_file) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(private)) => (certificate, private),
        (Some(_), None) => {
            return Err(wrong(
                key,
                "client_key_file",
                "is missing: the client certificate has a key",
            ));
        }
        (None, Some(_)) => {
            return Err(wrong(key, "client_certificate_file", "is missing: the key is for one"));
        }
    };
    let mut pem = read(key, "client_certificate_file", url, certificate)?;
    if !Certificate::from_pem_bundle(&pem).is_ok_and(|certificates| !certificates.is_empty()) {
        let problem = "names a file that holds no certificate in PEM";
        return Err(wrong(key, "client_certificate_file", problem));
    }
    pem.push(b'\n');
    pem.extend(read(key, "client_key_file", url, private)?);
    let identity = Identity::from_pem(&pem);
    identity
        .map(Some)
        .map_err(|_| wrong(key, "client_key_file", "names a file that holds no private key in PEM"))
}

fn read(key: &str, name: &str, url: &Url, file: &Path) -> Result<Vec<u8>, ConfigError> {
    if url.scheme() == "http" {
        return Err(wrong(key, name, "has no meaning with an http:// URL: use https://"));
    }
    std::fs::read(file).map_err(|error| {
        wrong(key, name, format!("names {}, which cannot be read: {error}", file.display()))
    })
}

/// The innermost cause: the outer ones only say that a client could not be built.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    format!("cannot be used: {cause}")
}
