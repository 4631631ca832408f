//! The PostgreSQL server that the tests run against.

use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};

/// The server that DATABASE_URL names, as the superuser that it names.
pub(crate) fn config() -> Config {
    let url = std::env::var("DATABASE_URL")
        .expect("DATABASE_URL is not set: run `make test`, which starts a server and sets it");
    url.parse().expect("DATABASE_URL is a connection string")
}

/// The maintenance database, from which others are created and dropped.
pub(crate) async fn connect() -> Client {
    open(&config()).await
}

pub(crate) async fn open(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("the test server accepts us");
    tokio::spawn(connection);
    client
}

/// A connection string for a program that is started by a test.
pub(crate) fn url(config: &Config) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"));
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    };
    let mut hosts: Vec<String> = config.get_hosts().iter().map(name).collect();
    let mut ports: Vec<String> = config.get_ports().iter().map(u16::to_string).collect();
    if hosts.is_empty() {
        hosts.push("localhost".to_owned());
    }
    if ports.is_empty() {
        ports.push("5432".to_owned());
    }
    let mut url = format!("host={} port={}", quote(&hosts.join(",")), ports.join(","));
    if config.get_target_session_attrs() == TargetSessionAttrs::ReadWrite {
        url.push_str(" target_session_attrs=read-write");
    }
    for (name, value) in [("user", config.get_user()), ("dbname", config.get_dbname())] {
        if let Some(value) = value {
            url.push_str(&format!(" {name}={}", quote(value)));
        }
    }
    if let Some(password) = config.get_password() {
        url.push_str(&format!(" password={}", quote(&String::from_utf8_lossy(password))));
    }
    url
}

/// Where it is, as `host:port`.
pub(crate) fn address() -> String {
    let config = config();
    let Some(Host::Tcp(host)) = config.get_hosts().first() else {
        panic!("DATABASE_URL names no host that a proxy could connect to")
    };
    format!("{host}:{}", config.get_ports().first().copied().unwrap_or(5432))
}

/// The same user and database, but somewhere else.
pub(crate) fn elsewhere(connection: &str, host: &str, port: u16) -> String {
    let before: Config = connection.parse().expect("a connection string");
    let mut config = Config::new();
    config.host(host).port(port);
    config.user(before.get_user().expect("a user"));
    config.dbname(before.get_dbname().expect("a database"));
    config.password(before.get_password().unwrap_or_default());
    url(&config)
}

/// Runs `work` to its end in a thread and a runtime of its own, as `Drop` has to.
pub(crate) fn block_on<F: Future<Output = ()> + Send + 'static>(work: F) {
    let thread = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(work);
    });
    if thread.join().is_err() {
        eprintln!("cleaning up after a test failed");
    }
}
