//! `trestle migrate` by a user who is not a superuser.

use crate::support::{Database, User, trestle};

const CONTROL_MEMBERS: &str = "SELECT count(*) FROM pg_auth_members \
    WHERE roleid = 'symphony_control'::regrole AND member = $1::text::regrole \
      AND coalesce((to_jsonb(pg_auth_members) ->> 'set_option')::boolean, true)";

/// The statements that the message tells a superuser to run.
fn remedies(message: &str) -> Vec<String> {
    message
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split_once("  -- "))
        .map(|(statement, _)| statement.to_owned())
        .collect()
}

fn refused(url: &str) -> Vec<String> {
    let refused = trestle(url, &["migrate"]).assert().code(1);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("nothing was changed"), "{message}");
    remedies(&message)
}

#[tokio::test]
async fn the_rights_that_migrate_asks_for_are_exactly_enough() {
    // The template's migration creates the group roles, which belong to the cluster.
    Database::new().await;
    let user = User::new().await;
    let database = Database::empty().await;
    let url = user.url(&database);
    let superuser = database.connect().await;

    let remedies = refused(&url);
    assert_eq!(remedies.len(), 2, "{remedies:?}");
    superuser.batch_execute(&remedies[0]).await.unwrap();
    assert_eq!(refused(&url), remedies[1..]);
    superuser.batch_execute(&remedies[1]).await.unwrap();

    trestle(&url, &["migrate", "--check"]).assert().code(1);
    trestle(&url, &["migrate"]).assert().success();
    trestle(&url, &["migrate"]).assert().success();
    trestle(&url, &["migrate", "--check"]).assert().success();
    trestle(&url, &["migrate", "--status"]).assert().success();
    trestle(&database.url(), &["migrate", "--check"]).assert().success();
}

#[tokio::test]
async fn nobody_is_left_a_member_of_the_control_role() {
    Database::new().await;
    let user = User::new().await;
    let database = Database::empty().await;
    let url = user.url(&database);
    let superuser = database.connect().await;
    superuser.batch_execute(&refused(&url).join(" ")).await.unwrap();
    trestle(&url, &["migrate"]).assert().success();

    let members: i64 = superuser.query_one(CONTROL_MEMBERS, &[&user.name]).await.unwrap().get(0);
    assert_eq!(members, 0);
    let owner = "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'outbox'";
    let owner: String = superuser.query_one(owner, &[]).await.unwrap().get(0);
    assert_eq!(owner, "symphony_control");
}

#[tokio::test]
async fn a_schema_that_belongs_to_somebody_else_is_named() {
    let database = Database::empty().await;
    database.connect().await.batch_execute("CREATE SCHEMA outbox").await.unwrap();
    assert_eq!(refused(&database.url()), ["ALTER SCHEMA outbox OWNER TO symphony_control;"]);
}
