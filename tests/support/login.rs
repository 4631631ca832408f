//! Users who can log in, one for each group role. They belong to the cluster, so they stay.

use tokio_postgres::Config;

use super::server;

pub(crate) const PASSWORD: &str = "only-for-tests";

const LOCK_KEY: i64 = 4_861_305_772_918_461_004;

/// The name of a user of a server who is a member of `role`, made when it does not exist yet.
pub(crate) async fn member_of(server: &Config, role: &str) -> String {
    let user = format!("test_login_{role}");
    let mut server = server::open(server).await;
    let transaction = server.transaction().await.unwrap();
    // Roles are the cluster's and this lock the maintenance database's, which all tests share.
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK_KEY]).await.unwrap();
    let exists = transaction
        .query_opt("SELECT FROM pg_roles WHERE rolname = $1", &[&user])
        .await
        .unwrap()
        .is_some();
    if !exists {
        let create = format!("CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}' IN ROLE {role}");
        transaction.batch_execute(&create).await.unwrap();
    }
    transaction.commit().await.unwrap();
    user
}
