//! A database of a test's own.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config};
use uuid::Uuid;

use super::{login, server, template};

/// Another checkout may drop our template this often before we give up.
const MAX_COPIES: u32 = 5;

/// Dropped, with whoever is still connected to it, when the test ends.
pub(crate) struct Database {
    /// The server's maintenance database, from which this one is created and dropped.
    server: Config,
    name: String,
}

impl Database {
    /// With the outbox in it.
    pub(crate) async fn new() -> Self {
        let database = Self::unmade();
        let server = server::connect().await;
        let mut template = template::name().await;
        for _ in 0..MAX_COPIES {
            match copy(&server, &template, &database.name).await {
                Ok(()) => return database,
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_DATABASE) => {
                    template = template::ensure().await;
                }
                Err(error) => panic!("cannot copy {template}: {error}"),
            }
        }
        panic!("{template} vanished {MAX_COPIES} times");
    }

    /// With the outbox in it, on a server of the test's own.
    pub(crate) async fn on(server: &Config) -> Self {
        let database = Self::unmade_on(server.clone());
        let create = format!("CREATE DATABASE {}", database.name);
        server::open(server).await.batch_execute(&create).await.expect("a database");
        template::migrate(&database.config()).await;
        database
    }

    /// Without anything in it.
    pub(crate) async fn empty() -> Self {
        let database = Self::unmade();
        let create = format!("CREATE DATABASE {}", database.name);
        server::connect().await.batch_execute(&create).await.expect("a database can be created");
        database
    }

    /// As it is now. Waits until nobody is connected to it.
    pub(crate) async fn copy(&self) -> Self {
        let twin = Self::unmade();
        let server = server::connect().await;
        while let Err(error) = copy(&server, &self.name, &twin.name).await {
            assert_eq!(error.code(), Some(&SqlState::OBJECT_IN_USE), "cannot copy: {error}");
        }
        twin
    }

    /// Whoever is connected to it has to connect again.
    pub(crate) async fn end_connections(&self) {
        const END: &str =
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = $1";
        server::connect().await.query(END, &[&self.name]).await.expect("connections can be ended");
    }

    /// Another takes its place under its name, as if everything since it was copied had been lost.
    pub(crate) async fn fail_over_to(&self, replica: &Self) {
        self.end_connections().await;
        let server = server::connect().await;
        let (old, new, aside) = (&self.name, &replica.name, &format!("{}_lost", self.name));
        for (from, to) in [(old, aside), (new, old), (aside, new)] {
            let rename = format!("ALTER DATABASE {from} RENAME TO {to}");
            server.batch_execute(&rename).await.expect("nobody is connected to it");
        }
    }

    fn unmade() -> Self {
        Self::unmade_on(server::config())
    }

    fn unmade_on(server: Config) -> Self {
        Self { server, name: format!("trestle_test_{}", Uuid::new_v4().simple()) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn config(&self) -> Config {
        let mut config = self.server.clone();
        config.dbname(&self.name);
        config
    }

    /// A connection string for the superuser.
    pub(crate) fn url(&self) -> String {
        server::url(&self.config())
    }

    /// A connection string for another user.
    pub(crate) fn url_for(&self, user: &str, password: &str) -> String {
        let mut config = self.config();
        config.user(user).password(password);
        server::url(&config)
    }

    /// A connection as the superuser.
    pub(crate) async fn connect(&self) -> Client {
        server::open(&self.config()).await
    }

    /// A connection as a user who is a member of the group role `role` and nothing else.
    pub(crate) async fn connect_as(&self, role: &str) -> Client {
        server::open(&self.config_as(role).await).await
    }

    /// A connection string for a member of the group role `role`.
    pub(crate) async fn url_as(&self, role: &str) -> String {
        server::url(&self.config_as(role).await)
    }

    async fn config_as(&self, role: &str) -> Config {
        let user = login::member_of(&self.server, role).await;
        let mut config = self.config();
        config.user(&user).password(login::PASSWORD);
        config
    }
}

/// Copying files takes a quarter of the time that logging every page does, which is the default
/// since 15; before that there was no other way and no word for it.
async fn copy(server: &Client, template: &str, name: &str) -> Result<(), tokio_postgres::Error> {
    let version = "SELECT current_setting('server_version_num')::int4";
    let version: i32 = server.query_one(version, &[]).await?.get(0);
    let strategy = if version >= 150_000 { " STRATEGY file_copy" } else { "" };
    server.batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {template}{strategy}")).await
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server = self.server.clone();
        server::block_on(async move {
            if let Err(error) = server::open(&server).await.batch_execute(&drop).await {
                eprintln!("cannot drop a test's database: {error}");
            }
        });
    }
}
