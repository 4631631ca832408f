//! A migrated database that the tests' databases are copied from: a copy takes milliseconds, a
//! migration much longer.

use tokio::sync::OnceCell;
use tokio_postgres::{Client, Config};
use trestle::config::Secret;
use trestle::store::{Store, migrate as migrations};

use super::server;

const PREFIX: &str = "trestle_template_";

/// Serialises the makers of the template, in this process and in others.
const LOCK_KEY: i64 = 4_861_305_772_918_461_003;

static READY: OnceCell<String> = OnceCell::const_new();

/// The name of the template for the SQL of this build; made when it does not exist yet.
pub(crate) async fn name() -> String {
    READY.get_or_init(ensure).await.clone()
}

/// Makes the template unless it is there. Also called when a copy finds it gone, because another
/// checkout of this project dropped what it took for a leftover.
pub(crate) async fn ensure() -> String {
    let fingerprint = migrations::fingerprint_of_everything().expect("the SQL is embedded");
    let name = format!("{PREFIX}{}", &fingerprint[..16]);
    let server = server::connect().await;
    server.execute("SELECT pg_advisory_lock($1)", &[&LOCK_KEY]).await.unwrap();
    let exists = server
        .query_opt("SELECT FROM pg_database WHERE datname = $1", &[&name])
        .await
        .unwrap()
        .is_some();
    if !exists {
        build(&server, &name).await;
        drop_others(&server, &name).await;
    }
    server.execute("SELECT pg_advisory_unlock($1)", &[&LOCK_KEY]).await.unwrap();
    name
}

/// Under another name until it is complete: a build that is interrupted leaves no half template.
async fn build(server: &Client, name: &str) {
    let draft = format!("trestle_draft_{}", &name[PREFIX.len()..]);
    let drop = format!("DROP DATABASE IF EXISTS {draft} WITH (FORCE)");
    server.batch_execute(&drop).await.unwrap();
    server.batch_execute(&format!("CREATE DATABASE {draft}")).await.unwrap();
    let mut config = server::config();
    let store = migrate(config.dbname(&draft)).await;
    drop_connection(server, store, &draft).await;
    server.batch_execute(&format!("ALTER DATABASE {draft} RENAME TO {name}")).await.unwrap();
}

/// Puts the outbox into an empty database.
pub(super) async fn migrate(config: &Config) -> Store {
    let url = Secret::new(server::url(config));
    let mut store = Store::connect(&url).await.expect("the database accepts us");
    store.migrate().await.unwrap_or_else(|error| panic!("it cannot be migrated: {error}"));
    store
}

/// A database that somebody is connected to can be neither renamed nor copied.
async fn drop_connection(server: &Client, store: Store, database: &str) {
    drop(store);
    let connected = "SELECT FROM pg_stat_activity WHERE datname = $1 LIMIT 1";
    while server.query_opt(connected, &[&database]).await.unwrap().is_some() {
        tokio::task::yield_now().await;
    }
}

async fn drop_others(server: &Client, name: &str) {
    let others = "SELECT datname::text FROM pg_database \
                  WHERE starts_with(datname::text, $1) AND datname <> $2";
    for row in server.query(others, &[&PREFIX, &name]).await.unwrap() {
        let other: String = row.get(0);
        // Somebody may be copying it right now; then it stays until the next time.
        let _ = server.batch_execute(&format!("DROP DATABASE IF EXISTS {other}")).await;
    }
}
