//! What an authority issues, as files and as the TLS side of a receiver.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

use crate::support::{self, Issued};

/// A certificate authority, with a folder for what it issues.
pub(super) struct Authority {
    inner: support::Authority,
    pub(super) folder: TempDir,
}

impl Authority {
    pub(super) fn new() -> Self {
        Self { inner: support::Authority::new(), folder: TempDir::new().unwrap() }
    }

    pub(super) fn issue(&self, name: &str) -> Issued {
        self.inner.issue(name)
    }

    pub(super) fn write(&self, name: &str, pem: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    }

    pub(super) fn ca_file(&self) -> PathBuf {
        self.write("ca.pem", &self.inner.pem())
    }

    /// The TLS side of a receiver with a certificate for `name`, which may ask its clients for one
    /// of ours.
    pub(super) fn acceptor(&self, name: &str, asks: bool, protocol: &str) -> TlsAcceptor {
        let builder = ServerConfig::builder();
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.inner.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let (chain, key) = into_rustls(self.issue(name));
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

fn into_rustls(issued: Issued) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let key = PrivatePkcs8KeyDer::from(issued.key.serialize_der());
    (vec![issued.certificate.into()], key.into())
}
