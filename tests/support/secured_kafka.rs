//! A broker that lets nobody in without a password or a certificate: one for each test binary.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use tokio::sync::OnceCell;

use super::lent::{KAFKA, Lent};
use super::{Authority, Issued};

/// The user who has [`PASSWORD`].
pub(crate) const USER: &str = "bridge-hunter2";
/// Has it too, and no right on anything.
pub(crate) const PAUPER: &str = "pauper-hunter2";
pub(crate) const PASSWORD: &str = "password-hunter2";
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stack/kafka.sh");

static SHARED: OnceCell<SecuredKafka> = OnceCell::const_new();

/// Its certificate is for 127.0.0.1 and no other name.
pub(crate) struct SecuredKafka {
    lent: Lent,
}

/// What gets a client in, or does not.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) brokers: String,
    properties: BTreeMap<&'static str, String>,
}

impl SecuredKafka {
    pub(crate) async fn shared() -> &'static Self {
        let start = async || tokio::task::spawn_blocking(Self::start).await.expect("a broker");
        SHARED.get_or_init(start).await
    }

    fn start() -> Self {
        let (lent, _) = Lent::start(KAFKA, "secured", &[], write_credentials);
        Self { lent }
    }

    /// A file that was written for the tests: `ca.pem`, `client.key`, `foreign-client.pem` ...
    pub(crate) fn file(&self, name: &str) -> String {
        self.lent.folder().join(name).to_str().unwrap().to_owned()
    }

    fn address(&self, port_file: &str) -> String {
        let port = std::fs::read_to_string(self.lent.folder().join(port_file)).unwrap();
        format!("127.0.0.1:{}", port.trim())
    }

    /// Where everybody gets in: for the tests' own clients.
    pub(crate) fn open(&self) -> String {
        self.address("port")
    }

    /// By user and password over TLS, as the documentation shows it.
    pub(crate) fn by_password(&self, mechanism: &str) -> Access {
        Access { brokers: self.address("port.sasl_ssl"), properties: BTreeMap::new() }
            .with("security.protocol", "SASL_SSL")
            .with("sasl.mechanism", mechanism)
            .with("sasl.username", USER)
            .with("sasl.password", PASSWORD)
            .with("ssl.ca.location", &self.file("ca.pem"))
    }

    /// By a client certificate.
    pub(crate) fn by_certificate(&self) -> Access {
        Access { brokers: self.address("port.ssl"), properties: BTreeMap::new() }
            .with("security.protocol", "SSL")
            .with("ssl.ca.location", &self.file("ca.pem"))
            .with("ssl.certificate.location", &self.file("client.pem"))
            .with("ssl.key.location", &self.file("client.key"))
    }

    /// Gives a user this password for SCRAM-SHA-512, also one that was not there before.
    pub(crate) async fn set_password(&self, user: &str, password: &str) {
        let mut command = Command::new(SCRIPT);
        command.arg("password").arg(self.lent.folder()).args([user, password]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

fn write_credentials(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let (ours, foreign) = (Authority::new(), Authority::new());
    let Issued { certificate, key } = ours.issue("127.0.0.1");
    write("server.pem", &(key.serialize_pem() + &certificate.pem()));
    for (prefix, authority) in [("", ours), ("foreign-", foreign)] {
        let Issued { certificate, key } = authority.issue("client.example");
        write(&format!("{prefix}ca.pem"), &authority.pem());
        write(&format!("{prefix}client.pem"), &certificate.pem());
        write(&format!("{prefix}client.key"), &key.serialize_pem());
    }
    let line =
        |(user, mechanism)| format!("SCRAM-SHA-{mechanism}=[name={user},password={PASSWORD}]\n");
    let users = [(USER, "256"), (USER, "512"), (PAUPER, "512")];
    write("scram", &users.map(line).concat());
}

impl Access {
    pub(crate) fn with(mut self, property: &'static str, value: &str) -> Self {
        self.properties.insert(property, value.to_owned());
        self
    }

    pub(crate) fn without(mut self, property: &str) -> Self {
        self.properties.remove(property).expect("it was there");
        self
    }

    /// The same, under another name of the broker.
    pub(crate) fn at(mut self, host: &str) -> Self {
        self.brokers = self.brokers.replace("127.0.0.1", host);
        self
    }

    /// For the table of a rail.
    pub(crate) fn toml(&self) -> String {
        let line = |(name, value)| format!("properties.{name:?} = {value:?}\n");
        self.properties.iter().map(line).collect()
    }
}
