//! Why a connection did not come about, in words that name the key and never a password.

use std::error::Error as _;
use std::io;

use rustls::{AlertDescription, CertificateError, Error};
use thiserror::Error as ThisError;

/// What can go wrong with TLS before the server is spoken to.
#[derive(Debug, ThisError)]
pub(in crate::store) enum TlsError {
    #[error("{0}")]
    Files(String),
    #[error("{0:?} is not a host name, so TLS cannot be spoken with it")]
    HostName(String),
    #[error("{}", handshake(.0, .1))]
    Handshake(#[source] io::Error, String),
}

pub(super) fn of(error: &tokio_postgres::Error) -> String {
    if let Some(db_error) = error.as_db_error() {
        return db_error.message().to_owned();
    }
    let Some(source) = error.source() else { return error.to_string() };
    // In TLS 1.3 a server looks at our certificate when we believe the handshake to be over.
    let late = source.downcast_ref::<io::Error>().and_then(cause).and_then(refusal_of_ours);
    match late {
        Some(refusal) => refusal,
        None if source.to_string() == "server does not support TLS" => {
            "the server offers no TLS, which `sslmode` asks for".to_owned()
        }
        None => source.to_string(),
    }
}

fn cause(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

fn handshake(error: &io::Error, host: &str) -> String {
    match cause(error) {
        Some(Error::InvalidCertificate(problem)) => refused_by_us(problem, host),
        Some(other) => {
            refusal_of_ours(other).unwrap_or_else(|| format!("TLS with the server failed: {other}"))
        }
        None => format!("TLS with the server failed: {error}"),
    }
}

pub(super) fn refused_by_us(problem: &CertificateError, host: &str) -> String {
    match problem {
        CertificateError::UnknownIssuer => "the server's certificate was issued by none of the \
             authorities in `sslrootcert`"
            .to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "the server's certificate is not for {host:?}, which `sslmode` verify-full asks \
                 for: connect by a name that it has (subjectAltName)"
            )
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".to_owned()
        }
        // Its type is of a crate that we do not know.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the server shows the certificate of an authority (CA:TRUE); it needs one that the \
             authority issued to it"
                .to_owned()
        }
        other => format!("the server's certificate is not valid: {other}"),
    }
}

fn refusal_of_ours(error: &Error) -> Option<String> {
    let Error::AlertReceived(alert) = error else { return None };
    match alert {
        AlertDescription::UnknownCA
        | AlertDescription::BadCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateRequired
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::DecryptError => {
            Some(format!("the server refused our certificate (`sslcert`): {alert:?}"))
        }
        _ => None,
    }
}
