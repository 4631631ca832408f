//! PostgreSQL over TLS, on real servers: one that speaks it and one that does not.

use trestle::config::Secret;
use trestle::store::Store;
use uuid::Uuid;

use crate::support::{CERTIFIED, LentPostgres, trestle};

/// Whether the server says that the connection is encrypted.
async fn encrypted(server: &LentPostgres, url: &str) -> Result<bool, String> {
    let name = Uuid::new_v4().to_string();
    let url = Secret::new(format!("{url}&application_name={name}"));
    let _store = Store::connect(&url).await.map_err(|error| error.to_string())?;
    let asked = "SELECT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                 WHERE application_name = $1";
    Ok(server.connect().await.query_one(asked, &[&name]).await.unwrap().get(0))
}

async fn refused(url: &str) -> String {
    let error = Store::connect(&Secret::new(url)).await.err().expect("it is refused").to_string();
    assert!(!error.contains("hunter2"), "{error}");
    error
}

#[tokio::test]
async fn every_mode_connects_to_a_server_that_speaks_tls() {
    let server = LentPostgres::secured().await;
    for (mode, expected) in [
        ("sslmode=disable", false),
        ("sslmode=prefer", true),
        ("", true),
        ("sslmode=require", true),
        ("sslmode=verify-ca", true),
        ("sslmode=verify-full", true),
        ("sslmode=require&channel_binding=require", true),
        ("sslmode=verify-full&channel_binding=require", true),
    ] {
        let root = if mode.contains("verify") { server.root() } else { String::new() };
        let url = server.url(&format!("{mode}&{root}"));
        assert_eq!(encrypted(server, &url).await, Ok(expected), "{mode}");
    }
}

#[tokio::test]
async fn a_server_without_tls_is_good_enough_only_where_tls_is_not_asked_for() {
    let server = LentPostgres::open().await;
    for mode in ["sslmode=disable", "sslmode=prefer", ""] {
        assert_eq!(encrypted(server, &server.url(mode)).await, Ok(false), "{mode}");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = server.url(&format!("sslmode={mode}&{}", server.root()));
        let error = refused(&url).await;
        assert!(error.contains("the server offers no TLS, which `sslmode` asks for"), "{error}");
    }
}

#[tokio::test]
async fn a_foreign_authority_is_refused_wherever_one_is_named() {
    let server = LentPostgres::secured().await;
    let foreign = server.file("foreign-ca.pem");
    for mode in ["require", "verify-ca", "verify-full"] {
        let url = server.url(&format!("sslmode={mode}&sslrootcert={foreign}"));
        let error = refused(&url.replace("trestle:trestle", "trestle:hunter2")).await;
        assert!(error.contains("none of the authorities in `sslrootcert`"), "{error}");
    }
    let error = refused(&server.url("sslrootcert=system")).await;
    assert!(error.contains("`sslrootcert`"), "{error}");
}

#[tokio::test]
async fn only_verify_full_cares_for_the_name() {
    let server = LentPostgres::secured().await;
    let url = |mode: &str| {
        let parameters = format!("sslmode={mode}&{}", server.root());
        server.url_of("trestle:trestle", "127.0.0.1", &parameters)
    };
    for mode in ["require", "verify-ca"] {
        assert_eq!(encrypted(server, &url(mode)).await, Ok(true), "{mode}");
    }
    let error = refused(&url("verify-full")).await;
    assert!(error.contains("is not for \"127.0.0.1\""), "{error}");
    // The name that is compared is the host, wherever the address leads.
    let by_name = format!("{}&hostaddr=127.0.0.1", server.url("sslmode=verify-full"));
    let by_name = format!("{by_name}&{}", server.root());
    assert_eq!(encrypted(server, &by_name).await, Ok(true));
}

#[tokio::test]
async fn a_client_certificate_lets_in_whom_it_names() {
    let server = LentPostgres::secured().await;
    let url = |client: &str| {
        let parameters = format!("sslmode=verify-full&{}{client}", server.root());
        server.url_of(CERTIFIED, "localhost", &parameters)
    };
    let files = |prefix: &str| {
        let [certificate, key] =
            ["client.pem", "client.key"].map(|name| server.file(&format!("{prefix}{name}")));
        format!("&sslcert={certificate}&sslkey={key}")
    };
    assert_eq!(encrypted(server, &url(&files(""))).await, Ok(true));
    let error = refused(&url("")).await;
    assert!(error.contains("certificate"), "{error}");
    // Its refusal may be lost when the server hangs up behind it.
    refused(&url(&files("foreign-"))).await;
    let mixed = files("").replace("client.key", "foreign-client.key");
    let error = refused(&url(&mixed)).await;
    assert!(error.contains("`sslcert` and `sslkey` do not belong together"), "{error}");
    let swapped = format!("&sslcert={0}&sslkey={0}", server.file("client.pem"));
    let error = refused(&url(&swapped)).await;
    assert!(error.contains("must hold a private key in PEM"), "{error}");
}

/// A login whose transactions are read-only on one of two servers.
const READER: &str = "CREATE ROLE passed_over LOGIN PASSWORD 'hunter2'";
const READ_ONLY: &str = "ALTER ROLE passed_over SET default_transaction_read_only = on";

#[tokio::test]
async fn a_server_that_may_not_be_written_to_is_passed_over() {
    let (written, read) = (LentPostgres::secured().await, LentPostgres::open().await);
    for server in [written, read] {
        server.connect().await.batch_execute(READER).await.unwrap();
    }
    read.connect().await.batch_execute(READ_ONLY).await.unwrap();
    let places = format!("localhost:{},localhost:{}", read.port(), written.port());
    let url = |wanted: &str| {
        format!("postgres://passed_over:hunter2@{places}/trestle?target_session_attrs={wanted}")
    };
    // The one without TLS is the one that may not be written to.
    assert_eq!(encrypted(written, &url("read-write")).await, Ok(true));
    assert_eq!(encrypted(read, &url("read-only")).await, Ok(false));
    assert_eq!(encrypted(read, &url("any")).await, Ok(false), "the first");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_passed_over() {
    let server = LentPostgres::secured().await;
    let dead = "postgres://trestle:trestle@127.0.0.1:1,localhost";
    let url = server.url("target_session_attrs=read-write&sslmode=require");
    let url = url.replace("postgres://trestle:trestle@localhost", dead);
    assert_eq!(encrypted(server, &url).await, Ok(true));
    let error = refused(&server.url("target_session_attrs=read-only")).await;
    assert!(error.contains("read-only") || error.contains("read only"), "{error}");
}

/// The open server cannot bind a login to a certificate, because it shows none.
#[tokio::test]
async fn a_variable_that_insists_on_channel_binding_is_obeyed() {
    let migrate = |server: &LentPostgres| {
        let mut command = trestle(&server.url(""), &["migrate", "--status"]);
        command.env("PGCHANNELBINDING", "require").output().unwrap()
    };
    assert_eq!(migrate(LentPostgres::secured().await).status.code(), Some(0));
    let refused = migrate(LentPostgres::open().await);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{message}");
    assert!(message.contains("channel binding"), "{message}");
}

#[tokio::test]
async fn a_server_that_takes_the_connection_and_says_nothing_is_given_up() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let error = refused(&format!("postgres://u@127.0.0.1:{port}/d?connect_timeout=1")).await;
    assert!(error.contains("does not answer"), "{error}");
}

#[tokio::test]
async fn migrations_run_over_tls_as_the_variables_of_libpq_say() {
    let server = LentPostgres::secured().await;
    let admin = server.connect().await;
    admin.batch_execute("CREATE DATABASE by_variables").await.unwrap();
    let url = server.url("").replace("/trestle?", "/by_variables");
    let migrate = |mode: &str, root: &str| {
        let mut command = trestle(&url, &["migrate"]);
        command.env("PGSSLMODE", mode).env("PGSSLROOTCERT", server.file(root));
        command.assert()
    };
    migrate("verify-full", "ca.pem").success();
    let failed = migrate("verify-full", "foreign-ca.pem").code(1);
    let message = String::from_utf8_lossy(&failed.get_output().stderr).into_owned();
    assert!(message.contains("`sslrootcert`"), "{message}");
    let refused = migrate("always", "ca.pem").code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("`sslmode` (from PGSSLMODE) must be disable, prefer"), "{message}");
}
