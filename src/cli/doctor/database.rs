//! Connects to the database and gathers what the checks of it judge.

use std::time::Duration;

use super::check::Check;
use super::{ledger, rights, server};
use crate::cli::{CliError, policies};
use crate::config::Config;
use crate::relay;
use crate::store::migrate::MigrateError;
use crate::store::{Store, StoreError, WorkerStore, hears, protection, target};

/// How long all of it may take. A lock that somebody holds can keep an answer away for ever.
const PATIENCE: Duration = Duration::from_secs(20);
/// An older transaction keeps dead rows and old partitions.
const OLD_SECONDS: i32 = 300;

/// A database that goes away meanwhile ends the checks of it, with what was found until then.
pub(super) async fn checks(config: &Config) -> Result<Vec<Check>, CliError> {
    let url = config.database.required_url()?;
    let mut store = match Store::connect(url).await {
        Ok(store) => store,
        Err(error) if error.is_configuration() => return Err(error.into()),
        Err(error) => return Ok(vec![unreachable(&error)]),
    };
    let mut checks = vec![Check::ok("database", format!("{} answers", target(url)?))];
    let looked = tokio::time::timeout(PATIENCE, look(config, &mut store, &mut checks)).await;
    if let Err(error) = looked.unwrap_or(Err(StoreError::TimedOut(PATIENCE))) {
        checks.push(unreachable(&error));
    }
    Ok(checks)
}

fn unreachable(error: &StoreError) -> Check {
    let words = error.to_string();
    let mend = if matches!(error, StoreError::TimedOut(_)) {
        "look into pg_stat_activity for who waits for a lock, and ask pg_blocking_pids(pid) for whom"
    } else if words.contains("authentication") || words.contains("password") {
        "correct user and password in DATABASE_URL (or PGPASSWORD), and look at pg_hba.conf"
    } else if words.contains("certificate") || words.contains("TLS") {
        "correct sslmode, sslrootcert, sslcert and sslkey in the connection string"
    } else if words.contains("does not exist") {
        "correct the name of the database in DATABASE_URL, or create it"
    } else {
        "correct host and port in DATABASE_URL, start the server, or open the firewall"
    };
    Check::fail("database", words, mend)
}

async fn look(
    config: &Config,
    store: &mut Store,
    checks: &mut Vec<Check>,
) -> Result<(), StoreError> {
    let url = config.database.url.as_ref();
    let protection = url.map(protection).transpose()?;
    let facts = store.server().await?;
    checks.extend(protection.map(|protection| server::tls(&facts, &protection)));
    checks.push(server::version(&facts));
    checks.push(server::writable(&facts));
    checks.push(server::durable(&facts));
    checks.push(server::connections(&facts));
    checks.push(server::clock(store.clock_ahead().await?));
    checks.push(server::transactions(&facts, &store.old_transactions(OLD_SECONDS).await?));

    let user = &facts.user;
    let may = store.rights().await?;
    checks.push(match store.migration_status().await {
        Err(MigrateError::MissingRights(_)) => ledger::told(store.schema_version().await)?,
        status => ledger::schema(status, may.has_outbox),
    });
    let forbidden = store.forbidden(&rights::bridge_calls(config)).await?;
    checks.push(rights::enough(user, &may, !config.rails.is_empty(), &forbidden));
    checks.extend(rights::too_many(user, &may));
    checks.push(rights::control(&may));
    checks.extend(ledger::partitions(&store.ledger_health().await?));
    if may.has_outbox {
        checks.push(policies_in_force(config, store).await?);
    }
    checks.push(listening(config).await);
    Ok(())
}

/// As a worker asks it or, where that is not allowed, as an operator does.
async fn policies_in_force(config: &Config, store: &Store) -> Result<Check, StoreError> {
    let configured = relay::policies(config);
    let asked = match &config.database.url {
        Some(url) => WorkerStore::new(url, config.relay.lease())?.check_policies(&configured).await,
        None => Ok(()),
    };
    match (asked, &configured) {
        (Ok(()), _) => Ok(ledger::policies(&[])),
        (Err(StoreError::Forbidden(_)), serde_json::Value::Object(configured)) => {
            match store.rail_policies().await {
                Ok(in_force) => Ok(ledger::policies(&policies::differences(&in_force, configured))),
                Err(StoreError::Forbidden(_)) => {
                    Ok(Check::skip("outbox policies", "not for this user to see"))
                }
                Err(error) => Err(error),
            }
        }
        (Err(error), _) => match error.server() {
            Some(server) if server.code == "P7012" => {
                Ok(ledger::other_policies(server.message.clone()))
            }
            Some(server) => Ok(Check::skip("outbox policies", server.message.clone())),
            None => Err(error),
        },
    }
}

/// A session that a pooler hands out by the transaction hears nothing, and keeps a worker's lock.
async fn listening(config: &Config) -> Check {
    let name = "database listen";
    if !config.relay.listen {
        return Check::ok(name, "relay.listen is false: polling alone");
    }
    let (key, url) = match (&config.database.listen_url, &config.database.url) {
        (Some(url), _) => ("database.listen_url", url),
        (None, Some(url)) => ("database.url", url),
        (None, None) => return Check::skip(name, "no database is configured"),
    };
    match hears(url).await {
        Ok(true) => Check::ok(name, format!("notifications come through {key}")),
        Ok(false) => Check::fail(
            name,
            format!("no notification comes through {key}: it goes through a transaction pooler"),
            "set database.listen_url to a direct connection, or relay.listen = false",
        ),
        Err(error) => Check::fail(name, format!("{key}: {error}"), format!("correct {key}")),
    }
}
