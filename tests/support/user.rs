//! A user of a test's own, without any right.

use uuid::Uuid;

use super::login::PASSWORD;
use super::{Database, server};

/// Dropped when the test ends: declare it before the databases in which it gets rights.
pub(crate) struct User {
    pub(crate) name: String,
}

impl User {
    pub(crate) async fn new() -> Self {
        let name = format!("test_user_{}", Uuid::new_v4().simple());
        let create = format!("CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'");
        server::connect().await.batch_execute(&create).await.expect("a role can be created");
        Self { name }
    }

    /// A connection string for this user.
    pub(crate) fn url(&self, database: &Database) -> String {
        database.url_for(&self.name, PASSWORD)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let drop = format!("DROP ROLE IF EXISTS {}", self.name);
        server::block_on(async move {
            if let Err(error) = server::connect().await.batch_execute(&drop).await {
                eprintln!("cannot drop a test's user: {error}");
            }
        });
    }
}
