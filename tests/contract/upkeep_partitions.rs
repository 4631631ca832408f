//! Partitions are there before they are needed, and a row whose partition is missing is not lost.

use tokio_postgres::Client;

use crate::calls::{code, complete, enqueue};
use crate::lane_acts::{PARTICIPANT, RAIL, claim_rail, outcome};
use crate::support::Database;
use crate::upkeep::{Said, set, upkeep};

/// How many days from now on have a partition of the ledger, today included.
async fn days_ahead(client: &Client) -> i64 {
    const DAYS: &str = "SELECT count(*) FROM outbox.payment_outbox_partitions AS p \
        WHERE p.parent_name = 'payment_outbox_attempts' AND p.ends_at > clock_timestamp() \
          AND p.ends_at <= date_trunc('day', clock_timestamp(), 'UTC') + interval '11 days'";
    client.query_one(DAYS, &[]).await.unwrap().get(0)
}

async fn made_ahead(database: &Database) -> i64 {
    let client = database.connect().await;
    set(&client, r#"{"partitions_ahead": 10}"#).await;
    upkeep(&client).await.unwrap();
    days_ahead(&client).await
}

#[tokio::test]
async fn partitions_are_made_for_today_and_as_many_days_ahead_as_are_set() {
    let database = Database::new().await;
    assert_eq!(made_ahead(&database).await, 11);
}

#[tokio::test]
async fn without_looking_ahead_no_more_partitions_would_be_made() {
    let database = Database::new().await;
    database.take_out("create_partitions", "v_set.partitions_ahead", "0").await;
    assert!(made_ahead(&database).await < 11);
}

#[tokio::test]
async fn partitions_leave_no_gap_when_their_length_changes_and_are_all_append_only() {
    const GAPS: &str = "SELECT count(*) FROM ( \
        SELECT from_id, lag(to_id) OVER (PARTITION BY parent_name ORDER BY from_id) AS before \
        FROM outbox.payment_outbox_partitions) AS p WHERE before <> from_id";
    const OPEN: &str = "SELECT count(*) FROM pg_inherits AS i \
        WHERE i.inhparent IN ('outbox.payment_outbox_attempts'::regclass, 'outbox.payment_outbox_events'::regclass) \
          AND NOT EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = i.inhrelid \
                          AND t.tgname = 'append_only' AND t.tgenabled = 'A')";
    let database = Database::new().await;
    let client = database.connect().await;
    for settings in [
        r#"{"partition_days": 3, "partitions_ahead": 4}"#,
        r#"{"partition_days": 1, "partitions_ahead": 20}"#,
    ] {
        set(&client, settings).await;
        let said = upkeep(&client).await.unwrap();
        assert!(said.iter().any(|said| said.action == "created"), "{said:?}");
    }
    for none in [GAPS, OPEN] {
        assert_eq!(client.query_one(none, &[]).await.unwrap().get::<_, i64>(0), 0, "{none}");
    }
}

/// Whoever ran this for real would have lost the partition of today and those ahead.
pub(crate) const LOSE_PARTITIONS: &str = "DO $$ DECLARE p name; BEGIN \
    FOR p IN SELECT partition_name FROM outbox.payment_outbox_partitions WHERE parent_name = 'payment_outbox_attempts' LOOP \
      EXECUTE format('DROP TABLE outbox.%I', p); END LOOP; \
    DELETE FROM outbox.payment_outbox_partitions WHERE parent_name = 'payment_outbox_attempts'; END $$";

/// What a worker is told about its outcome where the row's partition is missing, and where the
/// outcome is then found.
pub(crate) async fn without_a_partition(client: &Client) -> (String, Option<String>) {
    const WHERE: &str = "SELECT tableoid::regclass::text FROM outbox.payment_outbox_attempts";
    client.batch_execute(LOSE_PARTITIONS).await.unwrap();
    enqueue(client, PARTICIPANT, RAIL).await;
    let claimed = claim_rail(client, RAIL, 1).await;
    let told = outcome(complete(client, "worker", &claimed[0], "DISPATCHED").await);
    let found = client.query_opt(WHERE, &[]).await.unwrap().map(|row| row.get(0));
    (told, found)
}

const DEFAULT: &str = "payment_outbox_attempts_default";

#[tokio::test]
async fn an_outcome_whose_partition_is_missing_is_recorded_in_the_default_partition() {
    let database = Database::new().await;
    let client = database.connect().await;
    let told = without_a_partition(&client).await;
    assert_eq!(told, ("done".to_owned(), Some(format!("outbox.{DEFAULT}"))));
}

#[tokio::test]
async fn without_a_default_partition_a_row_that_was_sent_could_not_be_recorded() {
    let database = Database::new().await;
    let client = database.connect().await;
    client.batch_execute(&format!("DROP TABLE outbox.{DEFAULT}")).await.unwrap();
    assert_eq!(without_a_partition(&client).await, ("23514".to_owned(), None));
}

/// The partitions for which a pass raises the alarm, or the SQLSTATE with which it fails.
async fn alarms(client: &Client) -> Result<Vec<Option<String>>, String> {
    without_a_partition(client).await;
    let said = upkeep(client).await.map_err(|error| code(&error).to_owned())?;
    let alarm = |said: Said| (said.action == "alarm").then_some(said.partition);
    Ok(said.into_iter().filter_map(alarm).collect())
}

#[tokio::test]
async fn upkeep_raises_the_alarm_for_rows_in_the_default_partition_and_makes_the_others() {
    let database = Database::new().await;
    let client = database.connect().await;
    let alarms = alarms(&client).await.unwrap();
    assert_eq!(alarms.len(), 2, "{alarms:?}");
    assert!(alarms.contains(&Some(DEFAULT.to_owned())), "{alarms:?}");
    assert_eq!(days_ahead(&client).await, 3, "tomorrow and two more days");
}

#[tokio::test]
async fn without_the_alarm_nobody_would_hear_of_rows_in_the_default_partition() {
    let database = Database::new().await;
    database.take_out("default_partition_alarm", "IF v_any", "IF false").await;
    let alarms = alarms(&database.connect().await).await.unwrap();
    assert!(!alarms.contains(&Some(DEFAULT.to_owned())), "{alarms:?}");
}

#[tokio::test]
async fn without_looking_into_the_default_partition_upkeep_would_fail_as_a_whole() {
    let database = Database::new().await;
    database.take_out("create_partition", "IF v_strays", "IF false").await;
    assert_eq!(alarms(&database.connect().await).await, Err("23514".to_owned()));
}

#[tokio::test]
async fn a_partition_that_could_not_be_made_is_made_at_the_next_pass() {
    const NEXT: &str = "SELECT 'payment_outbox_attempts' || to_char(max(ends_at) AT TIME ZONE 'UTC', '\"_\"YYYYMMDD') \
        FROM outbox.payment_outbox_partitions WHERE parent_name = 'payment_outbox_attempts'";
    let database = Database::new().await;
    let (client, other) = (database.connect().await, database.connect().await);
    let next: String = client.query_one(NEXT, &[]).await.unwrap().get(0);
    set(&client, r#"{"partitions_ahead": 5}"#).await;
    // Somebody else has the name of the first of two partitions, and then not.
    other.batch_execute(&format!("BEGIN; CREATE TABLE outbox.{next} ()")).await.unwrap();
    let said = upkeep(&client).await.unwrap();
    assert!(said.iter().any(|said| said.action == "busy" && said.about(&next)), "{said:?}");
    other.batch_execute("ROLLBACK").await.unwrap();
    upkeep(&client).await.unwrap();
    assert_eq!(days_ahead(&client).await, 6);
}

/// What the second of two sessions is told while the first has not committed.
async fn in_two_sessions(database: &Database) -> Vec<String> {
    let (one, other) = (database.connect().await, database.connect().await);
    set(&one, r#"{"partitions_ahead": 5}"#).await;
    one.batch_execute("BEGIN").await.unwrap();
    upkeep(&one).await.unwrap();
    let second = upkeep(&other).await;
    one.batch_execute("COMMIT").await.unwrap();
    match second {
        Ok(said) => said.into_iter().map(|said| said.detail).collect(),
        Err(error) => vec![code(&error).to_owned()],
    }
}

#[tokio::test]
async fn of_two_sessions_one_does_the_upkeep_and_the_other_says_so() {
    let database = Database::new().await;
    let said = in_two_sessions(&database).await;
    assert_eq!(said, ["upkeep is running in another session"]);
}

#[tokio::test]
async fn without_the_lock_both_sessions_would_try() {
    let database = Database::new().await;
    let lock = "pg_try_advisory_xact_lock(outbox.wake_up_key() + 1)";
    database.take_out("run_outbox_upkeep", lock, "true").await;
    let said = in_two_sessions(&database).await;
    assert_ne!(said, ["upkeep is running in another session"]);
}
