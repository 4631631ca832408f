//! What a connection string says about TLS, as libpq understands it.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio_postgres::config::SslMode;

use super::identity;
use super::settings::Settings;
use super::verifier::Trust;

const ROOT: &str = "sslrootcert";
const MODES: &str = "must be disable, prefer, require, verify-ca or verify-full";
/// What a server is asked for that speaks TLS from the first byte.
const PROTOCOL: &[u8] = b"postgresql";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Whose authorities are trusted.
#[derive(Debug)]
pub(super) enum Roots {
    /// The machine's own.
    System,
    File(PathBuf),
}

/// A certificate of our own, with its key.
#[derive(Debug)]
pub(super) struct ClientFiles {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

/// What the connection string says about TLS.
#[derive(Debug)]
pub(super) struct Security {
    mode: Mode,
    roots: Option<Roots>,
    client: Option<ClientFiles>,
    direct: bool,
}

impl Security {
    /// Takes those keys out that tokio-postgres does not know, or knows half.
    pub(super) fn take(settings: &mut Settings) -> Result<Self, String> {
        let roots = settings.take(ROOT).map(|root| match root.value.as_str() {
            "system" => Roots::System,
            file => Roots::File(PathBuf::from(file)),
        });
        let mode = mode(settings, roots.as_ref())?;
        let direct = settings.get("sslnegotiation").is_some_and(|way| way.value == "direct");
        let (certificate, key) = (settings.take("sslcert"), settings.take("sslkey"));
        if mode == Mode::Disable {
            return Ok(Self { mode, roots: None, client: None, direct: false });
        }
        if direct && mode == Mode::Prefer {
            return Err("`sslnegotiation` may be direct only where `sslmode` is require, \
                        verify-ca or verify-full"
                .to_owned());
        }
        let client = match (certificate, key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => {
                Some(ClientFiles { certificate: certificate.value.into(), key: key.value.into() })
            }
            (Some(_), None) => {
                return Err("`sslkey` is missing: name the file of the key of `sslcert`".to_owned());
            }
            (None, Some(_)) => {
                return Err("`sslcert` is missing: name the certificate of `sslkey`".to_owned());
            }
        };
        Ok(Self { mode, roots, client, direct })
    }

    /// Whether to speak TLS. Whom to believe is the handshake's affair.
    pub(super) fn negotiation(&self) -> SslMode {
        match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        }
    }

    /// `require` looks at the authority where one is named, as it always did in libpq. `prefer` does
    /// not: whoever can forge a certificate can as well say that there is no TLS.
    fn trust(&self) -> Result<Trust, String> {
        match (self.mode, &self.roots) {
            (Mode::VerifyFull, Some(roots)) => identity::roots(roots).map(Trust::Name),
            (Mode::VerifyCa | Mode::Require, Some(roots)) => {
                identity::roots(roots).map(Trust::Chain)
            }
            _ => Ok(Trust::Anybody),
        }
    }

    /// As libpq spells it.
    pub(super) fn mode_name(&self) -> &'static str {
        match self.mode {
            Mode::Disable => "disable",
            Mode::Prefer => "prefer",
            Mode::Require => "require",
            Mode::VerifyCa => "verify-ca",
            Mode::VerifyFull => "verify-full",
        }
    }

    /// Whether the server's certificate is looked at.
    pub(super) fn verifies(&self) -> bool {
        !matches!((self.mode, &self.roots), (Mode::Disable | Mode::Prefer, _) | (_, None))
    }

    pub(super) fn client_config(&self) -> Result<ClientConfig, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = self.trust()?.verifier(&provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.client {
            None => builder.with_no_client_auth(),
            Some(files) => {
                let (chain, key) = identity::client(files)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    format!("`sslcert` and `sslkey` do not belong together: {error}")
                })?
            }
        };
        if self.direct {
            config.alpn_protocols.push(PROTOCOL.to_vec());
        }
        Ok(config)
    }
}

fn mode(settings: &mut Settings, roots: Option<&Roots>) -> Result<Mode, String> {
    let Some(written) = settings.take("sslmode") else {
        let by_system = matches!(roots, Some(Roots::System));
        return Ok(if by_system { Mode::VerifyFull } else { Mode::Prefer });
    };
    let mode = match written.value.as_str() {
        "disable" => Mode::Disable,
        "prefer" => Mode::Prefer,
        "require" => Mode::Require,
        "verify-ca" => Mode::VerifyCa,
        "verify-full" => Mode::VerifyFull,
        _ => return Err(format!("{} {MODES}", written.name)),
    };
    match (mode, roots) {
        // Everybody can get a certificate from a public authority, for some name.
        (Mode::Prefer | Mode::Require | Mode::VerifyCa, Some(Roots::System)) => {
            Err(format!("{} must be verify-full where `{ROOT}` is system", written.name))
        }
        (Mode::VerifyCa | Mode::VerifyFull, None) => Err(format!(
            "`{ROOT}` is missing, which {} needs: name a file with the authority's certificate, \
             or system for those that this machine trusts",
            written.name
        )),
        _ => Ok(mode),
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::tls::MakeTlsConnect;

    use super::super::tls::Tls;
    use super::*;

    #[test]
    fn files_are_read_again_for_each_connection() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        let pem = rcgen::generate_simple_self_signed([]).unwrap().cert.pem();
        std::fs::write(&file, &pem).unwrap();
        let roots = Some(Roots::File(file.clone()));
        let security = Security { mode: Mode::VerifyFull, roots, client: None, direct: false };
        let mut tls = Tls::new(security).unwrap();
        assert!(tls.make_tls_connect("h").is_ok());
        std::fs::write(&file, "nothing").unwrap();
        let error = tls.make_tls_connect("h").err().unwrap().to_string();
        assert!(error.contains("holds no certificate in PEM"), "{error}");
        std::fs::write(&file, &pem).unwrap();
        assert!(tls.make_tls_connect("h").is_ok());
    }
}
