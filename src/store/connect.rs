//! Opens a connection.

use std::error::Error as _;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Config, Connection, NoTls, Socket};

use super::{Store, StoreError};
use crate::config::Secret;

/// Applies when the connection string sets no `connect_timeout` of its own.
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

/// A connection that is driven in the background. Its error, when it breaks, reaches whoever uses
/// the client next.
pub(super) async fn open(url: &Secret) -> Result<Client, StoreError> {
    let (client, connection) = dial(url).await?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(client)
}

/// A connection that the caller drives.
pub(super) async fn dial(
    url: &Secret,
) -> Result<(Client, Connection<Socket, NoTlsStream>), StoreError> {
    let config = parse(url.expose())?;
    config
        .connect(NoTls)
        .await
        .map_err(|error| StoreError::Connect { target: target(&config), reason: reason(&error) })
}

pub(super) fn parse(url: &str) -> Result<Config, StoreError> {
    if let Some(mode) = ["verify-full", "verify-ca"]
        .into_iter()
        .find(|mode| url.contains(&format!("sslmode={mode}")))
    {
        return Err(StoreError::TlsUnsupported(mode.to_owned()));
    }
    let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        StoreError::InvalidUrl(
            error.source().map_or_else(|| error.to_string(), ToString::to_string),
        )
    })?;
    if config.get_ssl_mode() == SslMode::Require {
        return Err(StoreError::TlsUnsupported("require".to_owned()));
    }
    if config.get_hosts().is_empty() {
        return Err(StoreError::InvalidUrl("it names no host".to_owned()));
    }
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
    Ok(config)
}

fn target(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "?".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_dbname() {
        Some(name) => format!("{host}:{port}/{name}"),
        None => format!("{host}:{port}"),
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    if let Some(db_error) = error.as_db_error() {
        return db_error.message().to_owned();
    }
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::{StoreError, parse};

    #[test]
    fn tls_that_cannot_be_had_is_refused_rather_than_left_out() {
        for mode in ["require", "verify-ca", "verify-full"] {
            let error = parse(&format!("postgres://u@h/d?sslmode={mode}")).unwrap_err();
            assert!(matches!(error, StoreError::TlsUnsupported(named) if named == mode));
        }
        for mode in ["disable", "prefer"] {
            assert!(parse(&format!("postgres://u@h/d?sslmode={mode}")).is_ok());
        }
    }

    #[test]
    fn no_error_shows_the_password() {
        for url in ["postgres://u:hunter2@h:port/d", "host=h password=hunter2 port=x", "hunter2"] {
            let error = parse(url).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
