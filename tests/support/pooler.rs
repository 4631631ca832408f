//! A PgBouncer of a test's own, in transaction mode.

use std::net::TcpListener;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::Config;

use super::server;

/// Whatever takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Stopped when the test ends.
pub(crate) struct Pooler {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// In front of the server of this connection string, for its user alone.
    pub(crate) async fn in_front_of(url: &str) -> Self {
        let folder = tempfile::tempdir_in("/tmp").expect("a folder");
        let config: Config = url.parse().expect("a connection string");
        let port = free_port();
        let (address, password) = (server::address(), config.get_password().unwrap_or_default());
        let (host, server_port) = address.rsplit_once(':').expect("host:port");
        let child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/stack/pgbouncer.sh"))
            .arg("run")
            .arg(folder.path())
            .args([&port.to_string(), host, server_port, config.get_user().expect("a user")])
            .arg(String::from_utf8_lossy(password).as_ref())
            .spawn()
            .expect("stack/pgbouncer.sh starts");
        let mut pooler = Self { child, port, _folder: folder };
        pooler.answers().await;
        pooler
    }

    /// The same connection string, by way of the pooler.
    pub(crate) fn instead_in(&self, url: &str) -> String {
        server::elsewhere(url, "127.0.0.1", self.port)
    }

    async fn answers(&mut self) {
        let until = Instant::now() + PATIENCE;
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            let ended = self.child.try_wait().expect("its status");
            assert!(ended.is_none(), "PgBouncer ended: run `make test`, which installs it");
            assert!(Instant::now() < until, "PgBouncer does not answer");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// It cannot choose one itself and say which.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("a port").port()
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
