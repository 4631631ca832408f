//! PostgreSQL servers that are lent to a test binary: one that speaks TLS, and one that does not.

use std::path::Path;

use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls};

use super::lent::{Lent, POSTGRES};
use super::{Authority, Issued};

/// A user who gets in by a certificate with this name, and by nothing else.
pub(crate) const CERTIFIED: &str = "certified";
/// The certificate of the one that speaks TLS is for this name alone, which is 127.0.0.1 everywhere.
const NAME: &str = "localhost";
/// Whoever wants to may come without TLS too: the tests' own clients do.
const HBA: &str = "hostssl all certified all cert\nhost all all all scram-sha-256\n";
const USERS: &str = "CREATE ROLE certified LOGIN";

static SECURED: OnceCell<LentPostgres> = OnceCell::const_new();
static OPEN: OnceCell<LentPostgres> = OnceCell::const_new();

pub(crate) struct LentPostgres {
    lent: Lent,
    port: u16,
}

impl LentPostgres {
    /// With TLS.
    pub(crate) async fn secured() -> &'static Self {
        let start = async || {
            let server = Self::start("secured").await;
            server.connect().await.batch_execute(USERS).await.expect("users can be created");
            server
        };
        SECURED.get_or_init(start).await
    }

    /// Without TLS.
    pub(crate) async fn open() -> &'static Self {
        OPEN.get_or_init(async || Self::start("throwaway").await).await
    }

    async fn start(kind: &'static str) -> Self {
        tokio::task::spawn_blocking(move || Self::lend(kind)).await.expect("a server")
    }

    fn lend(kind: &'static str) -> Self {
        let (lent, port) = Lent::start(POSTGRES, kind, &[], write_credentials);
        Self { lent, port: port.parse().expect("the server says its port") }
    }

    /// A file that was written for the tests: `ca.pem`, `client.key`, `foreign-client.pem` ...
    pub(crate) fn file(&self, name: &str) -> String {
        self.lent.folder().join(name).to_str().unwrap().to_owned()
    }

    /// A connection string for the superuser, with the name that the certificate has.
    pub(crate) fn url(&self, parameters: &str) -> String {
        self.url_of("trestle:trestle", NAME, parameters)
    }

    pub(crate) fn url_of(&self, login: &str, host: &str, parameters: &str) -> String {
        format!("postgres://{login}@{host}:{}/trestle?{parameters}", self.port)
    }

    /// Whom the server's certificate is to be believed by: `sslrootcert` for a connection string.
    pub(crate) fn root(&self) -> String {
        format!("sslrootcert={}", self.file("ca.pem"))
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// A connection of the test's own, as the superuser.
    pub(crate) async fn connect(&self) -> Client {
        let url = self.url("sslmode=disable");
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

fn write_credentials(folder: &Path) {
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let (ours, foreign) = (Authority::new(), Authority::new());
    let Issued { certificate, key } = ours.issue(NAME);
    write("server.pem", &certificate.pem());
    write("server.key", &key.serialize_pem());
    write("pg_hba.conf", HBA);
    for (prefix, authority) in [("", ours), ("foreign-", foreign)] {
        let Issued { certificate, key } = authority.issue_to(CERTIFIED);
        write(&format!("{prefix}ca.pem"), &authority.pem());
        write(&format!("{prefix}client.pem"), &certificate.pem());
        write(&format!("{prefix}client.key"), &key.serialize_pem());
    }
}
