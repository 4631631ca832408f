//! How far a receiver can be reached, without a request being sent.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::Url;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::settings;
use crate::config::{ConfigError, HttpRailConfig};

/// How long each step may take.
const STEP: Duration = Duration::from_secs(5);
/// A receiver that does not like our certificate says so after the handshake.
const SECOND_THOUGHTS: Duration = Duration::from_millis(300);
const DAY_SECONDS: i64 = 86_400;

/// A receiver that was reached.
#[derive(Debug)]
pub struct Visit {
    /// Where it is: `bank.example:443`.
    pub place: String,
    pub local: bool,
    /// How long its certificate is valid; None without TLS.
    pub days_left: Option<i64>,
    /// The same of our own certificate, where there is one.
    pub own_days_left: Option<i64>,
}

/// What is in the way, in the order in which it is met.
#[derive(Debug)]
pub enum Obstacle {
    Name { host: String, why: String },
    Port { place: String, why: String },
    Tls { place: String, why: String },
}

/// Whom we believe, and what we show.
#[derive(Default)]
struct Papers<'a> {
    /// Otherwise the authorities of this machine.
    ca_file: Option<&'a Path>,
    /// A certificate and its key.
    own: Option<(&'a Path, &'a Path)>,
}

impl<'a> Papers<'a> {
    fn of(config: &'a HttpRailConfig) -> Self {
        let certificate = config.client_certificate_file.as_deref();
        let own = certificate.zip(config.client_key_file.as_deref());
        Self { ca_file: config.ca_file.as_deref(), own }
    }
}

/// Finds the receiver of a rail, connects and, with TLS, shakes hands.
pub async fn visit(
    rail: &str,
    config: &HttpRailConfig,
) -> Result<Result<Visit, Obstacle>, ConfigError> {
    let url = settings::url(&format!("rails.{rail}"), config)?;
    Ok(go(&url, &Papers::of(config)).await)
}

/// The same of what is no rail, and knows nothing of us.
pub async fn visit_address(url: &Url) -> Result<Visit, Obstacle> {
    go(url, &Papers::default()).await
}

async fn go(url: &Url, papers: &Papers<'_>) -> Result<Visit, Obstacle> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let place = format!("{host}:{port}");
    let addresses = resolve(&host, port).await?;
    let local = addresses.iter().all(|address| address.ip().is_loopback());
    let stream = connect(&place, &addresses).await?;
    let days_left = if url.scheme() == "https" {
        let shaken = shake_hands(stream, &host, papers).await;
        Some(shaken.map_err(|why| Obstacle::Tls { place: place.clone(), why })?)
    } else {
        None
    };
    let own_days_left =
        papers.own.and_then(|(file, _)| days_left_of(certificates(file).ok()?.first()?));
    Ok(Visit { place, local, days_left, own_days_left })
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Obstacle> {
    let obstacle = |why: String| Obstacle::Name { host: host.to_owned(), why };
    match tokio::time::timeout(STEP, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(addresses)) => {
            let addresses: Vec<_> = addresses.collect();
            if addresses.is_empty() {
                Err(obstacle("no address".to_owned()))
            } else {
                Ok(addresses)
            }
        }
        Ok(Err(error)) => Err(obstacle(error.to_string())),
        Err(_) => Err(obstacle(format!("no answer within {} s", STEP.as_secs()))),
    }
}

async fn connect(place: &str, addresses: &[SocketAddr]) -> Result<TcpStream, Obstacle> {
    let mut why = String::new();
    for address in addresses {
        match tokio::time::timeout(STEP, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = format!("{address}: {error}"),
            Err(_) => why = format!("{address}: no answer within {} s", STEP.as_secs()),
        }
    }
    Err(Obstacle::Port { place: place.to_owned(), why })
}

/// How many days the receiver's certificate is valid, or why it is not believed.
async fn shake_hands(stream: TcpStream, host: &str, papers: &Papers<'_>) -> Result<i64, String> {
    let tls = client_config(papers)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connecting = TlsConnector::from(Arc::new(tls)).connect(name, stream);
    let mut stream = match tokio::time::timeout(STEP, connecting).await {
        Ok(connected) => connected.map_err(|error| error.to_string())?,
        Err(_) => return Err(format!("no answer within {} s", STEP.as_secs())),
    };
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).cloned();
    if let Ok(Err(error)) = tokio::time::timeout(SECOND_THOUGHTS, stream.read(&mut [0])).await {
        return Err(format!("it ended the connection: {error}"));
    }
    let days = shown.as_ref().and_then(days_left_of);
    days.ok_or_else(|| "its certificate cannot be read".to_owned())
}

fn client_config(papers: &Papers<'_>) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let authorities = match papers.ca_file {
        Some(file) => certificates(file)?,
        None => rustls_native_certs::load_native_certs().certs,
    };
    roots.add_parsable_certificates(authorities);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    match papers.own {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::from_pem_file(key).map_err(|error| error.to_string())?;
            let chain = certificates(certificate)?;
            builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())
        }
        None => Ok(builder.with_no_client_auth()),
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    read.map_err(|error| format!("{}: {error}", file.display()))
}

fn days_left_of(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let now = i64::try_from(now.as_secs()).ok()?;
    Some((parsed.validity().not_after.timestamp() - now).div_euclid(DAY_SECONDS))
}
