//! The connections of a worker: a small pool, and a bound on how long a call may take.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, QueueMode, RecyclingMethod, Runtime,
};
use futures_util::future::join3;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::connect::{self, Endpoint};
use super::error::{StoreError, is_io};
use crate::config::Secret;

/// Claims, completions, renewals and upkeep, each with one at hand.
const CONNECTIONS: usize = 6;

/// A call that takes longer than a quarter of a lease, within these bounds, has lost its server: the
/// connection is given up while the leases last.
const CALL_TIMEOUT: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(2)..=Duration::from_secs(15);

/// A parameter and its type: a statement without a name is sent with both, in one go.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// What a worker asks of the database: one method for each SQL function.
#[derive(Clone)]
pub struct WorkerStore {
    pool: Pool,
    endpoint: Arc<Endpoint>,
    timeout: Duration,
    begin: Arc<str>,
}

impl WorkerStore {
    /// Makes the pool, for a worker with leases of this length; the first call connects.
    pub fn new(url: &Secret, lease: Duration) -> Result<Self, StoreError> {
        let timeout = (lease / 4).clamp(*CALL_TIMEOUT.start(), *CALL_TIMEOUT.end());
        let endpoint = connect::parse(url)?.within(timeout);
        let manager = Manager::from_config(
            endpoint.config.clone(),
            endpoint.tls.clone(),
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            // The one that was used last: what it needs is still in the server's caches.
            .queue_mode(QueueMode::Lifo)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(timeout))
            .create_timeout(Some(timeout))
            .build()
            .map_err(|error| StoreError::Protocol(error.to_string()))?;
        Ok(Self { pool, endpoint: endpoint.into(), timeout, begin: begin(timeout).into() })
    }

    /// Runs a statement in a transaction on one of the connections, without a prepared statement and
    /// in one round trip. When a call ran out of time its connection is closed, because it may still
    /// be running there, and so are those that nobody uses, which most likely lost the server too.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        // All three are sent, in this order, before the first answer is waited for.
        let call = join3(
            client.batch_execute(&self.begin),
            client.query_typed(statement, parameters),
            client.batch_execute("COMMIT"),
        );
        let Ok((begun, rows, committed)) = tokio::time::timeout(self.timeout, call).await else {
            drop(Object::take(client));
            self.pool.retain(|_, _| false);
            return Err(StoreError::TimedOut(self.timeout));
        };
        begun?;
        let rows = rows?;
        committed?;
        Ok(rows)
    }

    async fn client(&self) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(|error| match error {
            deadpool_postgres::PoolError::Backend(error) if error.as_db_error().is_some() => {
                StoreError::from(error)
            }
            // A server that is there, but not as it is asked to be: somebody has to know why.
            deadpool_postgres::PoolError::Backend(error)
                if !is_io(&error) && !error.is_closed() =>
            {
                self.endpoint.refused(&error)
            }
            _ => StoreError::ConnectionLost,
        })
    }
}

/// The server gives a call up before we do, so that nothing is claimed for somebody who has gone, nor
/// locked by a call whose end got lost; and workers call at READ COMMITTED, whatever the database's
/// default is. Set for each call, because behind a transaction pooler the session is not ours: it
/// takes no options of a client, and what a client leaves in it others find there.
fn begin(timeout: Duration) -> String {
    let server = (timeout * 4 / 5).as_millis();
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = {server}; \
         SET LOCAL idle_in_transaction_session_timeout = {server}"
    )
}
