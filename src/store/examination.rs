//! What the server says about itself and about us, for `trestle doctor`. Catalogues alone: everybody
//! may read them.

use std::time::{Duration, Instant, SystemTime};

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connect::{self, open};
use super::listen::Ear;
use super::{Store, StoreError};
use crate::config::Secret;

const SERVER: &str = "SELECT current_setting('server_version_num')::int4, current_setting('server_version'), \
    current_user::text, current_database()::text, coalesce(s.ssl, false), s.version, pg_is_in_recovery(), \
    current_setting('default_transaction_read_only')::bool, current_setting('fsync')::bool, \
    current_setting('synchronous_commit'), (SELECT sum(d.numbackends) FROM pg_stat_database AS d)::int8, \
    current_setting('max_connections')::int8, pg_has_role('pg_read_all_stats', 'USAGE') \
    FROM (SELECT pg_backend_pid() AS pid) AS me LEFT JOIN pg_stat_ssl AS s USING (pid)";
const RIGHTS: &str = "SELECT r.rolsuper OR EXISTS (SELECT FROM pg_roles AS s WHERE s.rolsuper AND pg_has_role(s.oid, 'MEMBER')), \
    r.rolcreaterole, r.rolreplication OR r.rolbypassrls, \
    ARRAY(SELECT g.rolname::text FROM pg_roles AS g WHERE g.rolname LIKE 'symphony\\_%' AND pg_has_role(g.oid, 'MEMBER') ORDER BY 1), \
    ARRAY(SELECT n.nspname || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
          WHERE n.nspname IN ('outbox', 'outbox_archive') AND c.relkind IN ('r', 'p') \
            AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE') ORDER BY 1), \
    ARRAY(SELECT p.proname::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace \
          WHERE n.nspname = 'outbox' AND has_function_privilege('public', p.oid, 'EXECUTE') ORDER BY 1), \
    ARRAY(SELECT m.member::regrole::text FROM pg_auth_members AS m JOIN pg_roles AS c ON c.oid = m.roleid \
          WHERE c.rolname = 'symphony_control' AND (coalesce((to_jsonb(m) ->> 'set_option')::bool, true) \
            OR coalesce((to_jsonb(m) ->> 'inherit_option')::bool, true)) ORDER BY 1), \
    EXISTS (SELECT FROM pg_namespace AS n WHERE n.nspname = 'outbox') \
    FROM pg_roles AS r WHERE r.rolname = current_user";
/// Of these functions, those that are there and may not be called.
const FORBIDDEN: &str = "SELECT p.proname::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace \
    WHERE n.nspname = 'outbox' AND p.proname = ANY ($1) \
      AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')) ORDER BY 1";
/// A partition that nobody should write to has no pages; the last one ends at the time in its bound.
const LEDGER: &str = "SELECT \
    ARRAY(SELECT c.relname::text FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace \
          WHERE n.nspname = 'outbox' AND c.relname IN ('payment_outbox_attempts_default', 'payment_outbox_events_default') \
            AND pg_relation_size(c.oid) > 0 ORDER BY 1), \
    (SELECT max(('x' || translate(left(b.bound, 13), '-', ''))::bit(48)::int8 / 1000) - EXTRACT(epoch FROM clock_timestamp())::int8 \
     FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid JOIN pg_class AS p ON p.oid = i.inhparent \
     JOIN pg_namespace AS n ON n.oid = p.relnamespace \
     CROSS JOIN LATERAL substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \\(''([0-9a-f-]{36})''') AS b (bound) \
     WHERE n.nspname = 'outbox' AND p.relname = 'payment_outbox_attempts')";
/// Of other users' transactions only members of pg_read_all_stats see when they began.
const OLD: &str = "SELECT 'ROLLBACK PREPARED ' || quote_literal(gid) || ';', 'prepared transaction ' || quote_literal(gid), \
        EXTRACT(epoch FROM clock_timestamp() - prepared)::int8 \
    FROM pg_prepared_xacts WHERE database = current_database() AND prepared < clock_timestamp() - $1 * interval '1 second' \
    UNION ALL \
    SELECT 'SELECT pg_terminate_backend(' || pid || ');', 'transaction of ' || coalesce(usename::text, '?') || ' (process ' || pid || ')', \
        EXTRACT(epoch FROM clock_timestamp() - xact_start)::int8 \
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - $1 * interval '1 second' \
    ORDER BY 3 DESC LIMIT 5";
const NOTIFY: &str = "SELECT pg_notify($1, '')";

/// How long a notification may take that is heard at all.
const HEARING: Duration = Duration::from_secs(2);

/// The server, and the connection to it.
#[derive(Debug, Clone)]
pub struct Server {
    pub version_number: i32,
    pub version: String,
    pub user: String,
    pub database: String,
    pub encrypted: bool,
    pub tls_version: Option<String>,
    pub in_recovery: bool,
    pub read_only: bool,
    pub fsync: bool,
    pub synchronous_commit: String,
    pub connections: i64,
    pub max_connections: i64,
    /// Whether this user sees what others are doing.
    pub sees_others: bool,
}

/// What this user is and may.
#[derive(Debug, Clone, Default)]
pub struct Rights {
    /// Or can become one.
    pub superuser: bool,
    pub create_role: bool,
    /// Replication, or past row security.
    pub all_seeing: bool,
    pub groups: Vec<String>,
    pub writable_tables: Vec<String>,
    pub public_functions: Vec<String>,
    pub control_members: Vec<String>,
    pub has_outbox: bool,
}

#[derive(Debug, Clone)]
pub struct LedgerHealth {
    /// Default partitions that are not empty.
    pub strays: Vec<String>,
    /// How long until the last partition ends; negative when it is over.
    pub seconds_ahead: Option<i64>,
}

/// A transaction that has been open for long.
#[derive(Debug, Clone)]
pub struct OldTransaction {
    /// The SQL that ends it.
    pub remedy: String,
    pub what: String,
    pub age_seconds: i64,
}

/// How a connection string protects a connection.
#[derive(Debug, Clone)]
pub struct Protection {
    pub sslmode: &'static str,
    /// The server's certificate is looked at.
    pub verifies: bool,
    /// Every host is this machine.
    pub local: bool,
}

/// What a connection string says about TLS.
pub fn protection(url: &Secret) -> Result<Protection, StoreError> {
    Ok(connect::parse(url)?.protection())
}

/// Whether a notification is heard on a connection to this database: through a pooler that hands out
/// sessions by the transaction it is not.
pub async fn hears(url: &Secret) -> Result<bool, StoreError> {
    let channel = format!("trestle_doctor_{}", uuid::Uuid::new_v4().simple());
    let mut ear = Ear::on(url, &channel).await?;
    let voice = open(url).await?;
    voice.query_typed(NOTIFY, &[(&channel, Type::TEXT)]).await?;
    match tokio::time::timeout(HEARING, ear.hear()).await {
        Ok(heard) => heard.map(|()| true),
        Err(_) => Ok(false),
    }
}

impl Store {
    pub async fn server(&self) -> Result<Server, StoreError> {
        let row = self.only_row(SERVER).await?;
        Ok(Server {
            version_number: row.try_get(0)?,
            version: row.try_get(1)?,
            user: row.try_get(2)?,
            database: row.try_get(3)?,
            encrypted: row.try_get(4)?,
            tls_version: row.try_get(5)?,
            in_recovery: row.try_get(6)?,
            read_only: row.try_get(7)?,
            fsync: row.try_get(8)?,
            synchronous_commit: row.try_get(9)?,
            connections: row.try_get(10)?,
            max_connections: row.try_get(11)?,
            sees_others: row.try_get(12)?,
        })
    }

    pub async fn rights(&self) -> Result<Rights, StoreError> {
        let row = self.only_row(RIGHTS).await?;
        Ok(Rights {
            superuser: row.try_get(0)?,
            create_role: row.try_get(1)?,
            all_seeing: row.try_get(2)?,
            groups: row.try_get(3)?,
            writable_tables: row.try_get(4)?,
            public_functions: row.try_get(5)?,
            control_members: row.try_get(6)?,
            has_outbox: row.try_get(7)?,
        })
    }

    /// Of these functions of the outbox, those that this user may not call.
    pub async fn forbidden(&self, functions: &[&str]) -> Result<Vec<String>, StoreError> {
        let rows = self.client.query_typed(FORBIDDEN, &[(&functions, Type::TEXT_ARRAY)]).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    pub async fn ledger_health(&self) -> Result<LedgerHealth, StoreError> {
        let row = self.only_row(LEDGER).await?;
        Ok(LedgerHealth { strays: row.try_get(0)?, seconds_ahead: row.try_get(1)? })
    }

    /// Transactions of this database that are older than so many seconds, the oldest first.
    pub async fn old_transactions(&self, seconds: i32) -> Result<Vec<OldTransaction>, StoreError> {
        let rows = self.client.query_typed(OLD, &[(&seconds, Type::INT4)]).await?;
        let read = |row: &Row| {
            Ok(OldTransaction {
                remedy: row.try_get(0)?,
                what: row.try_get(1)?,
                age_seconds: row.try_get(2)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// How far the database's clock is ahead of ours, in seconds, give or take half of the way.
    pub async fn clock_ahead(&self) -> Result<f64, StoreError> {
        let (before, began) = (SystemTime::now(), Instant::now());
        let theirs = self.clock().await?;
        let ours = before + began.elapsed() / 2;
        Ok(match theirs.duration_since(ours) {
            Ok(ahead) => ahead.as_secs_f64(),
            Err(behind) => -behind.duration().as_secs_f64(),
        })
    }

    async fn only_row(&self, statement: &str) -> Result<Row, StoreError> {
        let rows = self.client.query_typed(statement, &[]).await?;
        rows.into_iter().next().ok_or_else(|| StoreError::Protocol("no row".to_owned()))
    }
}
