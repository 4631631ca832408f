//! Certificates for tests.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use time::OffsetDateTime;
use uuid::Uuid;

/// A certificate authority.
pub(crate) struct Authority {
    pub(crate) issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate with its key.
pub(crate) struct Issued {
    pub(crate) certificate: rcgen::Certificate,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // What has its issuer's name, some take for its own issuer.
        params.distinguished_name.push(DnType::CommonName, Uuid::new_v4().to_string());
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    /// For a host name or an address.
    pub(crate) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        Issued { certificate: params.signed_by(&key, &self.issuer).unwrap(), key }
    }

    /// For a host name, until a certain time.
    pub(crate) fn issue_until(&self, name: &str, ends: OffsetDateTime) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_after = ends;
        Issued { certificate: params.signed_by(&key, &self.issuer).unwrap(), key }
    }

    /// For a person or a program: a common name and no other.
    pub(crate) fn issue_to(&self, common_name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, common_name);
        Issued { certificate: params.signed_by(&key, &self.issuer).unwrap(), key }
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }
}
