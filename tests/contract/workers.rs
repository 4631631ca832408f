//! Workers that say that they are there, and those of whom nothing is heard any more.

use std::time::Duration;

use tokio_postgres::Client;

use crate::calls::{claim, enqueue};
use crate::refusals::{Call, Case, assert_needs_read_committed, assert_refused, let_through};
use crate::steps::run;
use crate::support::Database;

const BAD: [Case; 6] = [
    ("p_worker_id", "NULL", "P7109", "p_worker_id"),
    ("p_worker_id", "' '", "P7109", "p_worker_id"),
    ("p_rail_types", "NULL", "P7103", "p_rail_types"),
    ("p_rail_types", "'{}'", "P7103", "p_rail_types"),
    ("p_rail_types", "ARRAY[NULL]::text[]", "P7103", "p_rail_types"),
    ("p_rail_types", "'{Not A Rail}'", "P7103", "p_rail_types"),
];

fn noting() -> Call {
    Call::new("note_worker", &[("p_worker_id", "'worker'"), ("p_rail_types", "'{kafka}'")])
}

async fn note(client: &Client, worker: &str, rails: &str) {
    run(client, &format!("SELECT outbox.note_worker('{worker}', '{{{rails}}}')")).await;
}

/// Each worker with its rails, how many lanes it holds, and whether it is live.
async fn shown(client: &Client) -> Vec<String> {
    const VIEW: &str = "SELECT concat_ws(' ', worker_id, rail_types, leased_lanes, live) \
        FROM outbox.outbox_worker_status ORDER BY worker_id";
    client.query(VIEW, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// As if the worker had last been heard so long ago.
async fn fall_silent(client: &Client, worker: &str, ago: &str) {
    let silent = format!(
        "UPDATE outbox.payment_outbox_workers SET started_at = started_at - interval '{ago}', \
         seen_at = seen_at - interval '{ago}', live_until = live_until - interval '{ago}' WHERE worker_id = '{worker}'"
    );
    run(client, &silent).await;
}

#[tokio::test]
async fn a_worker_is_shown_with_its_rails_whether_or_not_it_holds_a_lease() {
    let database = Database::new().await;
    let executor = database.connect_as("symphony_executor").await;
    let client = database.connect().await;
    note(&executor, "idle", "ach,kafka").await;
    note(&executor, "busy", "kafka").await;
    for participant in ["alice", "bob"] {
        enqueue(&client, participant, "kafka").await;
    }
    claim(&client, "busy", 1).await;
    claim(&client, "unheard", 1).await;
    let expected = ["busy kafka 1 t", "idle ach,kafka 0 t", "unheard kafka 1 f"];
    assert_eq!(shown(&client).await, expected);
    note(&executor, "idle", "ach").await;
    run(&executor, "SELECT outbox.forget_worker('busy')").await;
    assert_eq!(shown(&client).await, ["busy kafka 1 f", "idle ach 0 t", "unheard kafka 1 f"]);
}

#[tokio::test]
async fn a_worker_that_falls_silent_is_gone_after_a_while_and_forgotten_later() {
    let database = Database::new().await;
    let client = database.connect().await;
    note(&client, "silent", "kafka").await;
    fall_silent(&client, "silent", "29 seconds").await;
    assert_eq!(shown(&client).await, ["silent kafka 0 t"]);
    fall_silent(&client, "silent", "1 second").await;
    assert_eq!(shown(&client).await, ["silent kafka 0 f"]);
    note(&client, "other", "kafka").await;
    assert_eq!(shown(&client).await, ["other kafka 0 t", "silent kafka 0 f"]);
    fall_silent(&client, "silent", "10 minutes").await;
    note(&client, "other", "kafka").await;
    assert_eq!(shown(&client).await, ["other kafka 0 t"]);
    // It was only slow: it is there again.
    note(&client, "silent", "kafka").await;
    assert_eq!(shown(&client).await, ["other kafka 0 t", "silent kafka 0 t"]);
}

/// Two that forget the same ones, one of which is just coming back, must not wait for each other.
#[tokio::test]
async fn nobody_waits_for_another_to_say_that_it_is_there() {
    let database = Database::new().await;
    let (first, second) = (database.connect().await, database.connect().await);
    for worker in ["back", "gone"] {
        note(&first, worker, "kafka").await;
        fall_silent(&first, worker, "11 minutes").await;
    }
    run(&first, "BEGIN; SELECT outbox.note_worker('back', '{kafka}')").await;
    crate::steps::never_wait(&second).await;
    note(&second, "other", "kafka").await;
    run(&first, "COMMIT").await;
    assert_eq!(shown(&first).await, ["back kafka 0 t", "other kafka 0 t"]);
}

#[tokio::test]
async fn a_bad_word_of_a_worker_is_refused_by_name() {
    let database = Database::new().await;
    let witness = database.connect().await;
    let executor = database.connect_as("symphony_executor").await;
    assert_needs_read_committed(&executor, &noting()).await;
    assert_refused(&witness, &executor, &noting(), &BAD).await;
    assert_eq!(let_through(&witness, &noting(), &BAD).await, [""; 0]);
    database.take_out("note_worker", "RAISE EXCEPTION '", "RAISE NOTICE '").await;
    assert_ne!(let_through(&witness, &noting(), &BAD).await, [""; 0]);
}

#[tokio::test]
async fn a_worker_knows_which_of_its_rails_have_work_and_for_whom() {
    const TENANT: &str = "11111111-1111-1111-1111-111111111111";
    let database = Database::new().await;
    database.control_clock().await;
    let client = database.connect().await;
    let later = "SELECT outbox.enqueue_payment_outbox('i' || n, 'p' || n, 'k', r, '{}', NULL, t::uuid, now() + d::interval) \
        FROM (VALUES (1, 'kafka', NULL, '0'), (2, 'ach', NULL, '4 minutes'), (3, 'sepa', NULL, '6 minutes'), \
                     (4, 'bank', '11111111-1111-1111-1111-111111111111', '0')) AS v (n, r, t, d)";
    run(&client, later).await;
    let executor = database.connect_as("symphony_executor").await;
    let waiting = async |tenant: Option<&str>| -> Vec<String> {
        const ASK: &str = "SELECT concat_ws(' ', rail_type, is_due) \
            FROM outbox.waiting_rails('{kafka,ach,sepa,bank,none}', $1::text::uuid) ORDER BY 1";
        executor.query(ASK, &[&tenant]).await.unwrap().iter().map(|row| row.get(0)).collect()
    };
    assert_eq!(waiting(None).await, ["ach f", "bank t", "kafka t"]);
    assert_eq!(waiting(Some(TENANT)).await, ["bank t"]);
    run(&client, "SELECT outbox.pause_outbox_lane('p1', 'kafka', 'ops', 'why')").await;
    database.advance(Duration::from_secs(300)).await;
    assert_eq!(waiting(None).await, ["ach t", "bank t", "sepa f"]);
}
