//! What the two status views say of rows, rails and tenants, and to whom.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::calls::{code, complete, enqueue};
use crate::lane_acts::{claim_rail, pause, set_policies};
use crate::support::Database;

const DELAYED: &str = "SELECT FROM outbox.enqueue_payment_outbox(gen_random_uuid()::text, $1, 'key', \
    'ach', '{}', p_not_before => now() + interval '1 hour')";

/// One participant for each state in which its rows can be.
async fn one_of_each(client: &Client) {
    let rail = "ach";
    set_policies(client, r#"{"ach": {"on_failed": "halt"}}"#).await.unwrap();
    for who in ["expired", "halted", "leased", "retried"] {
        enqueue(client, who, rail).await;
    }
    let claimed = claim_rail(client, rail, 4).await;
    let claimed_for = |who| claimed.iter().find(|row| row.participant_id == who).unwrap();
    complete(client, "worker", claimed_for("halted"), "FAILED").await.unwrap();
    complete(client, "worker", claimed_for("retried"), "RETRYABLE").await.unwrap();
    for who in ["halted", "leased", "due", "paused"] {
        enqueue(client, who, rail).await;
    }
    client.execute(DELAYED, &[&"delayed"]).await.unwrap();
    enqueue(client, "delayed", rail).await;
    pause(client, "paused", rail).await.unwrap();
    // The views ask the server's own clock.
    let expire = "UPDATE outbox.payment_outbox_pending \
        SET lease_expires_at = now() - interval '1 second' WHERE participant_id = 'expired'";
    client.execute(expire, &[]).await.unwrap();
}

/// Participant, number and state of each row but the dead letter.
async fn states(client: &Client) -> Vec<(String, i64, String)> {
    const STATES: &str = "SELECT participant_id, sequence_id, derived_state \
        FROM outbox.outbox_operational_status WHERE dead_letter_of IS NULL ORDER BY 1, 2";
    let rows = client.query(STATES, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

const EXPECTED: [(&str, i64, &str); 9] = [
    ("delayed", 1, "delayed"),
    ("delayed", 2, "blocked"),
    ("due", 1, "due"),
    ("expired", 1, "lease expired"),
    ("halted", 2, "halted"),
    ("leased", 1, "leased"),
    ("leased", 2, "blocked"),
    ("paused", 1, "paused"),
    ("retried", 1, "due"),
];

fn owned(states: &[(&str, i64, &str)]) -> Vec<(String, i64, String)> {
    states.iter().map(|(who, no, state)| ((*who).to_owned(), *no, (*state).to_owned())).collect()
}

#[tokio::test]
async fn every_pending_row_has_the_state_that_it_waits_in() {
    let database = Database::new().await;
    let client = database.connect().await;
    one_of_each(&client).await;
    assert_eq!(states(&client).await, owned(&EXPECTED));
}

/// Replaces a condition of a view, which must be in it.
async fn take_out_of_view(client: &Client, view: &str, guard: &str, instead: &str) {
    let source = format!("SELECT pg_get_viewdef('outbox.{view}')");
    let source: String = client.query_one(&source, &[]).await.unwrap().get(0);
    assert!(source.contains(guard), "{view} has no {guard:?}:\n{source}");
    let replace =
        format!("CREATE OR REPLACE VIEW outbox.{view} AS {}", source.replace(guard, instead));
    client.batch_execute(&replace).await.unwrap();
}

#[tokio::test]
async fn without_its_condition_each_state_would_be_told_as_another() {
    // Condition, participant and number of a row that it tells apart, what it would be told as.
    let conditions = [
        ("p.lease_expires_at <= clock_timestamp()", "expired", 1, "leased"),
        ("p.lease_token IS NOT NULL", "leased", 1, "due"),
        ("l.halted_by IS NOT NULL", "halted", 2, "due"),
        ("l.paused_at IS NOT NULL", "paused", 1, "due"),
        ("h.blocked", "leased", 2, "due"),
        ("p.next_attempt_at > clock_timestamp()", "delayed", 1, "due"),
    ];
    let database = Database::new().await;
    let client = database.connect().await;
    one_of_each(&client).await;
    for (guard, who, number, instead) in conditions {
        client.batch_execute("BEGIN").await.unwrap();
        take_out_of_view(&client, "outbox_operational_status", guard, "false").await;
        let told = states(&client).await;
        let wrong = (who.to_owned(), number, instead.to_owned());
        assert!(told.contains(&wrong), "without {guard}: {told:?}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

#[tokio::test]
async fn a_pending_row_is_shown_with_its_latest_attempt_its_lease_and_its_due_time() {
    const LATEST: &str = "SELECT last_state::text, last_attempt_no FROM outbox.outbox_operational_status \
        WHERE participant_id = 'retried'";
    const TIMES: &str = "SELECT \
        (SELECT lease_age_seconds >= 0 FROM outbox.outbox_operational_status WHERE derived_state = 'leased'), \
        (SELECT time_to_due BETWEEN interval '50 minutes' AND interval '1 hour' \
           FROM outbox.outbox_operational_status WHERE derived_state = 'delayed'), \
        (SELECT bool_and(time_to_due = interval '0') \
           FROM outbox.outbox_operational_status WHERE derived_state = 'due')";
    let database = Database::new().await;
    let client = database.connect().await;
    one_of_each(&client).await;
    let latest = client.query_one(LATEST, &[]).await.unwrap();
    assert_eq!((latest.get::<_, &str>(0), latest.get::<_, i32>(1)), ("RETRYABLE", 1));
    let times = client.query_one(TIMES, &[]).await.unwrap();
    for (at, what) in
        ["lease_age_seconds", "time_to_due", "time_to_due when due"].iter().enumerate()
    {
        assert!(times.get::<_, bool>(at), "{what}");
    }
}

/// One line of the supervisor's view, without its age.
type Line = (String, Option<Uuid>, [i64; 6]);

async fn supervisor(client: &Client) -> Vec<Line> {
    const LINES: &str = "SELECT rail_type, tenant_id, depth, due_unleased_count, leased_count, \
          expired_lease_count, dlq_count, dlq_undelivered_count, oldest_age_seconds >= 0 \
        FROM outbox.supervisor_outbox_status ORDER BY rail_type, tenant_id NULLS FIRST";
    let rows = client.query(LINES, &[]).await.unwrap();
    rows.iter()
        .map(|row| {
            let counts = std::array::from_fn(|at| row.get(at + 2));
            assert_eq!(row.get::<_, Option<bool>>(8), (counts[0] > 0).then_some(true));
            (row.get(0), row.get(1), counts)
        })
        .collect()
}

const TENANT: Uuid = Uuid::from_u128(7);

/// For a tenant: a row on sepa, and one that failed there with its dead letter undelivered.
async fn work_of_a_tenant(client: &Client) {
    let enqueue = "SELECT FROM outbox.enqueue_payment_outbox(gen_random_uuid()::text, 'tara', 'key', \
        'sepa', '{}', p_tenant_id => $1)";
    client.execute(enqueue, &[&TENANT]).await.unwrap();
    let claimed = claim_rail(client, "sepa", 1).await;
    complete(client, "worker", &claimed[0], "FAILED").await.unwrap();
    client.execute(enqueue, &[&TENANT]).await.unwrap();
}

#[tokio::test]
async fn depth_leases_and_dead_letters_are_counted_by_rail_and_tenant() {
    let database = Database::new().await;
    let client = database.connect().await;
    one_of_each(&client).await;
    work_of_a_tenant(&client).await;
    let tenant = Some(TENANT);
    // depth, due, leased, expired, failures, undelivered dead letters
    let expected = [
        ("ach".to_owned(), None, [9, 6, 2, 1, 1, 1]),
        ("dlq".to_owned(), None, [1, 1, 0, 0, 0, 0]),
        ("dlq".to_owned(), tenant, [1, 1, 0, 0, 0, 0]),
        ("sepa".to_owned(), tenant, [1, 1, 0, 0, 1, 1]),
    ];
    assert_eq!(supervisor(&client).await, expected);
}

#[tokio::test]
async fn a_resolved_failure_leaves_the_dlq_s_count_and_a_delivered_letter_the_other() {
    let database = Database::new().await;
    let client = database.connect().await;
    work_of_a_tenant(&client).await;
    let sepa = |lines: Vec<Line>| lines.into_iter().find(|line| line.0 == "sepa").unwrap().2;
    assert_eq!(sepa(supervisor(&client).await)[4..], [1, 1]);
    crate::upkeep::deliver_next(&client, "dlq").await;
    assert_eq!(sepa(supervisor(&client).await)[4..], [1, 0]);
    let failed = "SELECT outbox.dismiss_failed_outbox(outbox_id, 'ana', 'a test') \
        FROM outbox.payment_outbox_failures";
    client.execute(failed, &[]).await.unwrap();
    assert_eq!(sepa(supervisor(&client).await)[4..], [0, 0]);
}

#[tokio::test]
async fn without_its_condition_each_count_would_be_another() {
    let conditions = [
        ("p_1.lease_token IS NULL", 1),
        ("p_1.lease_token IS NOT NULL", 2),
        ("p_1.lease_expires_at <= clock_timestamp()", 3),
        ("f_1.resolution IS NULL", 4),
        ("o.outbox_id = p_1.dead_letter_of", 5),
    ];
    let database = Database::new().await;
    let client = database.connect().await;
    one_of_each(&client).await;
    let right = supervisor(&client).await;
    for (guard, count) in conditions {
        client.batch_execute("BEGIN").await.unwrap();
        take_out_of_view(&client, "supervisor_outbox_status", guard, "false").await;
        let wrong = supervisor(&client).await;
        assert_ne!(wrong[0].2[count], right[0].2[count], "without {guard}: {wrong:?}");
        client.batch_execute("ROLLBACK").await.unwrap();
    }
}

/// Who may read both views; the others are refused for want of a right.
async fn readers(database: &Database) -> Vec<&'static str> {
    let mut readers = Vec::new();
    for role in ["readonly", "auditor", "executor", "operator", "ingest"] {
        let client = database.connect_as(&format!("symphony_{role}")).await;
        let read = "SELECT FROM outbox.supervisor_outbox_status, outbox.outbox_operational_status";
        match client.query(read, &[]).await {
            Ok(_) => readers.push(role),
            Err(error) => assert_eq!(code(&error), "42501"),
        }
    }
    readers
}

#[tokio::test]
async fn the_views_are_read_by_everybody_but_producers() {
    let database = Database::new().await;
    assert_eq!(readers(&database).await, ["readonly", "auditor", "executor", "operator"]);
}

#[tokio::test]
async fn without_its_grant_a_worker_could_not_read_its_gauges() {
    let database = Database::new().await;
    let revoke = "REVOKE ALL ON outbox.supervisor_outbox_status FROM symphony_executor";
    database.connect().await.batch_execute(revoke).await.unwrap();
    assert_eq!(readers(&database).await, ["readonly", "auditor", "operator"]);
}
