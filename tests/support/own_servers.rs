//! Servers of a test's own, which it kills and starts again.

use std::time::{Duration, Instant};

use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use super::lent::{KAFKA, Lent, POSTGRES};
use super::server;

/// Whatever takes longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct OwnKafka {
    lent: Lent,
    port: u16,
}

impl OwnKafka {
    pub(crate) async fn start() -> Self {
        tokio::task::spawn_blocking(|| {
            let (lent, _) = Lent::start(KAFKA, "throwaway", &[], |_| {});
            let port = std::fs::read_to_string(lent.folder().join("port")).expect("its port");
            Self { port: port.trim().parse().expect("a port"), lent }
        })
        .await
        .expect("a broker")
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&self) {
        self.lent.kill();
    }

    pub(crate) fn start_again(&self) {
        self.lent.start_again(self.port, &[]);
    }

    pub(crate) fn kill_and_start_again(&self) {
        self.kill();
        self.start_again();
    }
}

/// With fsync and all: what it has said is committed, a kill does not undo. (What the loss of power would
/// do, a test cannot show.)
pub(crate) struct OwnPostgres {
    lent: Lent,
    port: u16,
}

impl OwnPostgres {
    pub(crate) async fn start() -> Self {
        Self::lend(&[]).await
    }

    /// A standby that follows this one, and does not keep it waiting.
    pub(crate) async fn standby(&self) -> Self {
        Self::lend(&[self.to_follow()]).await
    }

    fn to_follow(&self) -> (&'static str, String) {
        ("STANDBY_OF", self.port.to_string())
    }

    async fn lend(variables: &[(&'static str, String)]) -> Self {
        let variables = variables.to_vec();
        tokio::task::spawn_blocking(move || {
            let (lent, port) = Lent::start(POSTGRES, "durable", &variables, |_| {});
            Self { lent, port: port.parse().expect("the server says its port") }
        })
        .await
        .expect("a server")
    }

    /// As its superuser.
    pub(crate) fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("localhost").port(self.port).dbname("trestle");
        config.user("trestle").password("trestle");
        config
    }

    /// Whichever of the two can be written to.
    pub(crate) fn config_or(&self, other: &Self) -> Config {
        let mut config = self.config();
        config.host("localhost").port(other.port);
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config
    }

    pub(crate) fn kill(&self) {
        self.lent.kill();
    }

    pub(crate) fn kill_and_start_again(&self) {
        self.kill();
        self.lent.start_again(self.port, &[]);
    }

    /// Forgets its data, and comes back as a standby of another.
    pub(crate) fn start_again_as_standby_of(&self, primary: &Self) {
        std::fs::remove_dir_all(self.lent.folder().join("data")).expect("its data");
        self.lent.start_again(self.port, &[primary.to_follow()]);
    }

    /// Nothing more of what its primary commits reaches this standby.
    pub(crate) async fn cut_off(&self) {
        let client = server::open(&self.config()).await;
        client.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.expect("a setting");
        client.batch_execute("SELECT pg_reload_conf()").await.expect("it is read");
        let until = Instant::now() + PATIENCE;
        let follows = "SELECT FROM pg_stat_wal_receiver";
        while client.query_opt(follows, &[]).await.expect("an answer").is_some() {
            assert!(Instant::now() < until, "the standby still follows");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// From now on it can be written to.
    pub(crate) async fn promote(&self) {
        let promote = "SELECT pg_promote(true, 30)";
        let promoted = server::open(&self.config()).await.query_one(promote, &[]).await;
        assert!(promoted.expect("an answer").get::<_, bool>(0), "it was not promoted");
    }
}
