//! The two sessions of a worker that sleeps: one hears, one holds the key.

use std::future::poll_fn;

use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, Connection, Socket};

use super::StoreError;
use super::connect::{self, TlsStream};
use crate::config::Secret;

const CHANNEL: &str = "outbox_pending";
const LOCK: &str = "SELECT outbox.take_wake_up_key()";
const UNLOCK: &str = "SELECT pg_advisory_unlock(outbox.wake_up_key())";

/// Hears that there is new work.
pub struct Ear {
    _client: Client,
    connection: Connection<Socket, TlsStream>,
}

/// Holds the key that tells producers that somebody sleeps.
pub struct SleepKey {
    client: Client,
    connection: JoinHandle<()>,
}

impl Ear {
    pub async fn open(url: &Secret) -> Result<Self, StoreError> {
        Self::on(url, CHANNEL).await
    }

    pub(super) async fn on(url: &Secret, channel: &str) -> Result<Self, StoreError> {
        let (client, mut connection) = connect::dial(url).await?;
        {
            // The connection has to be driven while the statement runs.
            let statement = format!("LISTEN {channel}");
            let listen = client.batch_execute(&statement);
            tokio::pin!(listen);
            loop {
                tokio::select! {
                    result = &mut listen => break result?,
                    message = poll_fn(|context| connection.poll_message(context)) => match message {
                        Some(message) => { message?; }
                        None => return Err(StoreError::ConnectionLost),
                    },
                }
            }
        }
        Ok(Self { _client: client, connection })
    }

    /// Returns at the next notification; an error means that some may have been missed.
    pub async fn hear(&mut self) -> Result<(), StoreError> {
        loop {
            match poll_fn(|context| self.connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(_))) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => return Err(StoreError::ConnectionLost),
            }
        }
    }
}

impl SleepKey {
    pub async fn open(url: &Secret) -> Result<Self, StoreError> {
        let (client, connection) = connect::driven(url).await?;
        Ok(Self { client, connection })
    }

    /// Waits until it is granted: then every producer that did not notify has committed.
    pub async fn take(&self) -> Result<(), StoreError> {
        while !self.client.query_one(LOCK, &[]).await?.try_get::<_, bool>(0)? {}
        Ok(())
    }

    /// Returns when the session is over: the key went with it.
    pub async fn lost(&mut self) {
        let _ = (&mut self.connection).await;
    }

    pub async fn give_back(&self) -> Result<(), StoreError> {
        Ok(self.client.batch_execute(UNLOCK).await?)
    }
}
