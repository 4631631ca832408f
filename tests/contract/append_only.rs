//! Ledger and events are append-only for everybody, and pending work cannot be truncated.

use tokio_postgres::Client;

use crate::append_only_statements::{Relation, changes, relations, truncations};
use crate::calls::{claim, code, complete, enqueue};
use crate::support::{Database, User};

/// Who has the right to try, with and without the setting that switches ordinary triggers off.
const POWERFUL: [&str; 4] = [
    "RESET ROLE",
    "SET ROLE symphony_control",
    "RESET ROLE; SET session_replication_role = replica",
    "RESET ROLE; SET session_replication_role = replica; SET ROLE symphony_control",
];

const GROUPS: [&str; 5] = [
    "symphony_ingest",
    "symphony_executor",
    "symphony_operator",
    "symphony_readonly",
    "symphony_auditor",
];

/// One finished row, and the first partitions of ledger and events in the archive.
async fn with_an_archive() -> Database {
    let database = Database::new().await;
    let client = database.connect().await;
    enqueue(&client, "alice", "ach").await;
    let row = claim(&client, "worker", 1).await.remove(0);
    complete(&client, "worker", &row, "DISPATCHED").await.unwrap();
    let archive = "SELECT action FROM (\
        SELECT (outbox.archive_partition(p)).action FROM outbox.payment_outbox_partitions AS p \
        WHERE from_id IN (SELECT min(from_id::text)::uuid FROM outbox.payment_outbox_partitions)) AS a \
        WHERE action = 'archived'";
    assert_eq!(client.query(archive, &[]).await.unwrap().len(), 2, "ledger and events");
    // What comes now lands in the default partitions.
    enqueue(&client, "bob", "ach").await;
    let row = claim(&client, "worker", 1).await.remove(0);
    complete(&client, "worker", &row, "RETRYABLE").await.unwrap();
    database
}

/// What was not refused with `expected`. No answer depends on the rows, so what goes through stays done.
async fn not_refused(client: &Client, statements: &[String], expected: &str) -> Vec<String> {
    let mut through = Vec::new();
    for statement in statements {
        let told = match client.batch_execute(statement).await {
            Ok(()) => "done".to_owned(),
            Err(error) => code(&error).to_owned(),
        };
        if told != expected {
            through.push(format!("{statement}: {told}"));
        }
    }
    through
}

async fn all_changes(client: &Client) -> Vec<String> {
    let version = "SELECT current_setting('server_version_num')::int4";
    let version: i32 = client.query_one(version, &[]).await.unwrap().get(0);
    let relations = relations(client).await;
    assert_eq!(relations.iter().filter(|r| r.name.starts_with("outbox_archive.")).count(), 2);
    assert_eq!(relations.iter().filter(|r| r.name.ends_with("_default")).count(), 2);
    assert!(relations.len() >= 12, "parents, dated, default and archived: {relations:?}");
    relations.iter().flat_map(|relation| changes(relation, version)).collect()
}

/// What owner and superuser can do to the ledger, the events and pending in spite of everything.
async fn done_by_the_powerful(database: &Database) -> Vec<String> {
    let client = database.connect().await;
    let mut statements = all_changes(&client).await;
    statements.extend(truncations("outbox.payment_outbox_pending", "outbox.payment_outbox_lanes"));
    let mut done = Vec::new();
    for becoming in POWERFUL {
        client.batch_execute(becoming).await.unwrap();
        let through = not_refused(&client, &statements, "P0001").await;
        done.extend(through.into_iter().map(|told| format!("{becoming}: {told}")));
        client.batch_execute("RESET ROLE; RESET session_replication_role").await.unwrap();
    }
    done
}

#[tokio::test]
async fn owner_and_superuser_are_refused_every_change_of_ledger_and_events() {
    let database = with_an_archive().await;
    assert_eq!(done_by_the_powerful(&database).await, [""; 0]);
}

#[tokio::test]
async fn everybody_else_lacks_the_right_to_try() {
    let nobody = User::new().await;
    let database = with_an_archive().await;
    let client = database.connect().await;
    let mut statements = all_changes(&client).await;
    statements.extend(truncations("outbox.payment_outbox_pending", "outbox.payment_outbox_lanes"));
    for role in GROUPS.into_iter().chain([nobody.name.as_str()]) {
        client.batch_execute(&format!("SET ROLE {role}")).await.unwrap();
        assert_eq!(not_refused(&client, &statements, "42501").await, [""; 0], "{role}");
        client.batch_execute("RESET ROLE").await.unwrap();
    }
}

/// The statements that go through once `sabotage` has taken the guard of one relation away.
async fn done_after(sabotage: &str) -> Vec<String> {
    let database = with_an_archive().await;
    database.connect().await.batch_execute(sabotage).await.unwrap();
    done_by_the_powerful(&database).await
}

fn all_concern(done: &[String], relation: &str) -> bool {
    !done.is_empty() && done.iter().all(|statement| statement.contains(relation))
}

#[tokio::test]
async fn a_default_partition_without_its_trigger_can_be_changed() {
    let name = "outbox.payment_outbox_attempts_default";
    let done = done_after(&format!("DROP TRIGGER append_only ON {name}")).await;
    assert!(all_concern(&done, name), "{done:#?}");
}

#[tokio::test]
async fn an_archived_partition_without_its_trigger_can_be_changed() {
    let drop = "DO $$ DECLARE t regclass; BEGIN \
        FOR t IN SELECT oid FROM pg_class WHERE relnamespace = 'outbox_archive'::regnamespace AND relkind = 'r' \
        LOOP EXECUTE format('DROP TRIGGER append_only ON %s', t); END LOOP; END $$";
    let done = done_after(drop).await;
    assert!(all_concern(&done, "outbox_archive."), "{done:#?}");
}

#[tokio::test]
async fn a_parent_without_its_trigger_can_be_changed() {
    let done = done_after("DROP TRIGGER append_only ON outbox.payment_outbox_events").await;
    assert!(all_concern(&done, "outbox.payment_outbox_events"), "{done:#?}");
    assert!(
        !done.iter().any(|told| told.contains("events_")),
        "its partitions have their own: {done:#?}"
    );
}

#[tokio::test]
async fn a_trigger_that_does_not_fire_always_is_got_around_by_the_replication_role() {
    let done = done_after(
        "ALTER TABLE outbox.payment_outbox_attempts ENABLE TRIGGER append_only;
         ALTER TABLE outbox.payment_outbox_pending ENABLE TRIGGER payment_outbox_pending_no_truncate",
    )
    .await;
    assert!(done.iter().any(|told| told.contains("UPDATE outbox.payment_outbox_attempts ")));
    assert!(done.iter().any(|told| told.contains("TRUNCATE outbox.payment_outbox_pending")));
    assert!(done.iter().all(|told| told.contains("session_replication_role")), "{done:#?}");
}

#[tokio::test]
async fn pending_without_its_trigger_can_be_truncated() {
    let drop = "DROP TRIGGER payment_outbox_pending_no_truncate ON outbox.payment_outbox_pending";
    let done = done_after(drop).await;
    assert!(all_concern(&done, "outbox.payment_outbox_pending"), "{done:#?}");
}

#[tokio::test]
async fn the_refusal_names_the_table_and_the_operation() {
    let database = with_an_archive().await;
    let client = database.connect().await;
    for Relation { name, .. } in relations(&client).await {
        let error = client.batch_execute(&format!("DELETE FROM {name}")).await.unwrap_err();
        let message = error.as_db_error().unwrap().message();
        assert_eq!(message, format!("{name} is append-only: DELETE is refused"));
    }
}
