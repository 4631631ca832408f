//! A worker says that it is there, and that it goes.

use tokio_postgres::types::Type;
use uuid::Uuid;

use super::{StoreError, WorkerStore};

const NOTE: &str = "SELECT outbox.note_worker($1, $2, $3)";
const FORGET: &str = "SELECT outbox.forget_worker($1)";

impl WorkerStore {
    /// Says that this worker is there, for which rails and whose rows. To be said every few seconds.
    pub async fn note_worker(
        &self,
        worker_id: &str,
        rails: &[&str],
        tenant_id: Option<Uuid>,
    ) -> Result<(), StoreError> {
        self.query(
            NOTE,
            &[(&worker_id, Type::TEXT), (&rails, Type::TEXT_ARRAY), (&tenant_id, Type::UUID)],
        )
        .await
        .map(|_| ())
    }

    /// Says that nobody has to count on this worker any more.
    pub async fn forget_worker(&self, worker_id: &str) -> Result<(), StoreError> {
        self.query(FORGET, &[(&worker_id, Type::TEXT)]).await.map(|_| ())
    }
}
