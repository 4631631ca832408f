//! Certificates for tests.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

/// A certificate authority, with a folder for what it issues.
pub(super) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub(super) folder: TempDir,
}

/// A certificate with its key.
pub(super) struct Issued {
    pub(super) certificate: rcgen::Certificate,
    pub(super) key: KeyPair,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: TempDir::new().unwrap() }
    }

    pub(super) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        Issued { certificate: params.signed_by(&key, &self.issuer).unwrap(), key }
    }

    pub(super) fn write(&self, name: &str, pem: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, pem).unwrap();
        path
    }

    pub(super) fn ca_file(&self) -> PathBuf {
        self.write("ca.pem", &self.issuer.pem())
    }

    /// The TLS side of a receiver with a certificate for `name`, which may ask its clients for one
    /// of ours.
    pub(super) fn acceptor(&self, name: &str, asks: bool, protocol: &str) -> TlsAcceptor {
        let builder = ServerConfig::builder();
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let (chain, key) = self.issue(name).into_rustls();
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Issued {
    fn into_rustls(self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        (vec![self.certificate.into()], key.into())
    }
}
