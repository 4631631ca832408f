//! The files that TLS needs.

use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::security::{ClientFiles, Roots};

/// The authorities that are trusted.
pub(super) fn roots(roots: &Roots) -> Result<RootCertStore, String> {
    let certificates = match roots {
        Roots::File(file) => certificates("sslrootcert", file)?,
        Roots::System => rustls_native_certs::load_native_certs().certs,
    };
    let mut store = RootCertStore::empty();
    // A machine's collection may hold some that nobody can use; a file of one's own should not be
    // refused for them either.
    let (usable, _) = store.add_parsable_certificates(certificates);
    match (usable, roots) {
        (0, Roots::System) => Err("`sslrootcert` is system, but this machine has no certificates \
                                   of authorities: install ca-certificates"
            .to_owned()),
        (0, Roots::File(file)) => Err(none_in("sslrootcert", file)),
        _ => Ok(store),
    }
}

/// Our own certificate with its chain, and its key.
pub(super) fn client(
    files: &ClientFiles,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), String> {
    let chain = certificates("sslcert", &files.certificate)?;
    let text = read("sslkey", &files.key)?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        let file = files.key.display();
        format!("`sslkey` names {file}, which must hold a private key in PEM without a password")
    })?;
    Ok((chain, key))
}

fn certificates(key: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(key, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    found.ok().filter(|found| !found.is_empty()).ok_or_else(|| none_in(key, file))
}

fn none_in(key: &str, file: &Path) -> String {
    format!("`{key}` names {}, which holds no certificate in PEM", file.display())
}

fn read(key: &str, file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file)
        .map_err(|error| format!("`{key}` names {}, which cannot be read: {error}", file.display()))
}
