//! The connections of a worker: a small pool, and a bound on how long a call may take.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{NoTls, Row};

use super::{StoreError, connect};
use crate::config::Secret;

/// Claims, completions, renewals and upkeep, each with one at hand.
const CONNECTIONS: usize = 6;

/// A call that takes longer than this has lost its server: the connection is given up.
const CALL_TIMEOUT: Duration = Duration::from_secs(15);

/// The server gives a call up before we do, so that nothing is claimed for somebody who has gone;
/// and workers call at READ COMMITTED, whatever the database's default is.
const SESSION: &str = "-c statement_timeout=12s -c default_transaction_isolation=read\\ committed";

/// What a worker asks of the database: one method for each SQL function.
#[derive(Clone)]
pub struct WorkerStore {
    pool: Pool,
}

impl WorkerStore {
    /// Makes the pool; the first call connects.
    pub fn new(url: &Secret) -> Result<Self, StoreError> {
        let mut config = connect::parse(url.expose())?;
        let options = config.get_options().map_or_else(String::new, |own| format!("{own} "));
        config.options(format!("{options}{SESSION}"));
        let manager = Manager::from_config(
            config,
            NoTls,
            ManagerConfig { recycling_method: RecyclingMethod::Fast },
        );
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(CALL_TIMEOUT))
            .create_timeout(Some(CALL_TIMEOUT))
            .build()
            .map_err(|error| StoreError::Protocol(error.to_string()))?;
        Ok(Self { pool })
    }

    /// Runs a statement on one of the connections. A connection whose call ran out of time is closed,
    /// because the call may still be running on it.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StoreError> {
        let client = self.client().await?;
        let call = async {
            let prepared = client.prepare_cached(statement).await?;
            client.query(&prepared, parameters).await
        };
        match tokio::time::timeout(CALL_TIMEOUT, call).await {
            Ok(result) => Ok(result?),
            Err(_) => {
                drop(Object::take(client));
                Err(StoreError::TimedOut(CALL_TIMEOUT))
            }
        }
    }

    async fn client(&self) -> Result<Object, StoreError> {
        self.pool.get().await.map_err(|error| match error {
            deadpool_postgres::PoolError::Backend(error) if error.as_db_error().is_some() => {
                StoreError::from(error)
            }
            _ => StoreError::ConnectionLost,
        })
    }
}
