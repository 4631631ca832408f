//! Whose certificate is accepted.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// How far a server is to be believed.
pub(super) enum Trust {
    Anybody,
    /// Whose certificate one of these authorities issued.
    Chain(RootCertStore),
    /// And whose name is in it.
    Name(RootCertStore),
}

impl Trust {
    pub(super) fn verifier(
        self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCertVerifier>, String> {
        let algorithms = provider.signature_verification_algorithms;
        let roots = match self {
            Self::Anybody => None,
            Self::Chain(roots) => Some(roots),
            Self::Name(roots) => {
                let verifier =
                    WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone())
                        .build()
                        .map_err(|error| error.to_string())?;
                return Ok(verifier);
            }
        };
        Ok(Arc::new(Nameless { roots, algorithms }))
    }
}

/// Looks at the chain, where there are authorities, and never at the name.
#[derive(Debug)]
struct Nameless {
    roots: Option<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Nameless {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(certificate)?;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                self.algorithms.all,
            )?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    use super::super::reason::refused_by_us;
    use super::*;

    #[test]
    fn an_authority_that_shows_its_own_certificate_is_told_what_it_needs() {
        let mut params = CertificateParams::new(["h".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        for trust in [Trust::Chain, Trust::Name] {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.der().clone()).unwrap();
            let verifier = trust(roots).verifier(&provider).unwrap();
            let name = ServerName::try_from("h").unwrap();
            let verdict =
                verifier.verify_server_cert(certificate.der(), &[], &name, &[], UnixTime::now());
            let Err(Error::InvalidCertificate(problem)) = verdict else { panic!("{verdict:?}") };
            let words = refused_by_us(&problem, "h");
            assert!(words.contains("CA:TRUE"), "{words}");
        }
    }
}
