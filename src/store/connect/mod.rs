//! Opens a connection.

mod binding;
mod identity;
mod reason;
mod security;
mod settings;
mod string;
#[cfg(test)]
mod tests;
mod tls;
mod variables;
mod verifier;

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, Connection, Socket};

use super::{Protection, Store, StoreError};
use crate::config::Secret;
use security::Security;
use settings::Settings;
pub(super) use tls::{Tls, TlsStream};

/// Applies when no `connect_timeout` is set.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that vanished without a word is missed after a minute, also by the connection that only
/// listens; it would be two hours. Apply when the connection string sets no `keepalives_idle`.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_RETRIES: u32 = 3;

impl Store {
    /// Connects, or says why not without ever showing the password.
    pub async fn connect(url: &Secret) -> Result<Self, StoreError> {
        Ok(Self { client: open(url).await? })
    }
}

/// A server, or several of which one is taken, and how to connect to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) config: Config,
    pub(super) tls: Tls,
}

/// A connection that is driven in the background. Its error, when it breaks, reaches whoever uses
/// the client next.
pub(super) async fn open(url: &Secret) -> Result<Client, StoreError> {
    driven(url).await.map(|(client, _)| client)
}

/// The same, with the task that drives it: it ends when the connection does.
pub(super) async fn driven(url: &Secret) -> Result<(Client, JoinHandle<()>), StoreError> {
    let (client, connection) = dial(url).await?;
    let driver = tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok((client, driver))
}

/// A connection that the caller drives.
pub(super) async fn dial(
    url: &Secret,
) -> Result<(Client, Connection<Socket, TlsStream>), StoreError> {
    let endpoint = parse(url)?;
    let Endpoint { config, tls } = &endpoint;
    match tokio::time::timeout(endpoint.patience(), config.connect(tls.clone())).await {
        Ok(connected) => connected.map_err(|error| endpoint.refused(&error)),
        Err(_) => Err(StoreError::Connect {
            target: endpoint.target(),
            reason: "it takes the connection, but does not answer".to_owned(),
        }),
    }
}

/// What the connection string says, and the environment where it says nothing.
pub(super) fn parse(url: &Secret) -> Result<Endpoint, StoreError> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    Endpoint::read(url.expose(), variable).map_err(StoreError::InvalidUrl)
}

/// Where a connection string leads, without its secrets, or what is wrong with it.
pub fn target(url: &Secret) -> Result<String, StoreError> {
    parse(url).map(|endpoint| endpoint.target())
}

impl Endpoint {
    fn read(url: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut settings = Settings::read(url, variable)?;
        let security = Security::take(&mut settings)?;
        let mut config = settings.config()?;
        if config.get_hosts().is_empty() {
            return Err("it names no host, nor does PGHOST".to_owned());
        }
        let local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        // A socket in the file system has no TLS, and libpq does not ask for it there.
        config.ssl_mode(if local { SslMode::Disable } else { security.negotiation() });
        complete(&mut config);
        Ok(Self { config, tls: Tls::new(security)? })
    }

    /// tokio-postgres bounds how long each host may take to be reached, but not what comes after.
    fn patience(&self) -> Duration {
        let each = self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        each * (self.hosts() + 1)
    }

    fn hosts(&self) -> u32 {
        u32::try_from(self.config.get_hosts().len()).unwrap_or(u32::MAX - 1)
    }

    /// Makes sure that a host that does not answer leaves time for the next one.
    pub(super) fn within(mut self, limit: Duration) -> Self {
        let each = self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        if self.hosts() > 1 {
            self.config.connect_timeout(each.min(limit / (self.hosts() + 1)));
        }
        self
    }

    /// Why no connection came about.
    pub(super) fn refused(&self, error: &tokio_postgres::Error) -> StoreError {
        StoreError::Connect { target: self.target(), reason: reason::of(error) }
    }

    pub(super) fn protection(&self) -> Protection {
        let is_local = |host: &Host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => is_loopback(name),
        };
        let security = self.tls.security();
        Protection {
            sslmode: security.mode_name(),
            verifies: security.verifies(),
            local: self.config.get_hosts().iter().all(is_local),
        }
    }

    fn target(&self) -> String {
        let ports = self.config.get_ports();
        let port = |place| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        let hosts = self.config.get_hosts().iter().enumerate().map(|(place, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(place)),
            Host::Unix(path) => format!("{}:{}", path.display(), port(place)),
        });
        let hosts = hosts.collect::<Vec<_>>().join(",");
        match self.config.get_dbname() {
            Some(name) => format!("{hosts}/{name}"),
            None => hosts,
        }
    }
}

fn is_loopback(name: &str) -> bool {
    let address: Result<std::net::IpAddr, _> = name.parse();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn complete(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if config.get_keepalives_idle() == Config::new().get_keepalives_idle() {
        config.keepalives_idle(KEEPALIVES_IDLE);
        config.keepalives_interval(KEEPALIVES_INTERVAL).keepalives_retries(KEEPALIVES_RETRIES);
    }
    if config.get_application_name().is_none() {
        config.application_name("trestle");
    }
}
