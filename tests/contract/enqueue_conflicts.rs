//! A used key with other arguments, and what an argument may not be.

use tokio_postgres::{Client, Error};
use uuid::Uuid;

use super::calls::{claim, code, complete};
use super::steps::{Request, count, refusal, run};
use super::support::Database;

/// SQLSTATE and text of a refusal.
fn refused<T>(result: Result<T, Error>) -> Option<(String, String)> {
    let error = result.err()?;
    let text = error.as_db_error().expect("the server refused it").message().to_owned();
    Some((code(&error).to_owned(), text))
}

/// One argument changed at a time, with the names that the refusal has to mention.
fn changes(request: &Request) -> Vec<(Request, &'static [&'static str])> {
    vec![
        (request.with(|r| r.payload = r#"{"amount": 1.00}"#.to_owned()), &["p_payload"]),
        (request.with(|r| r.payload = r#"{"amount": 2}"#.to_owned()), &["p_payload"]),
        (request.with(|r| r.participant = "q".to_owned()), &["p_participant_id"]),
        (request.with(|r| r.rail = "card".to_owned()), &["p_rail_type"]),
        // A participant belongs to one tenant, so another tenant means another participant.
        (
            request.with(|r| (r.participant, r.tenant) = ("r".to_owned(), Some(Uuid::new_v4()))),
            &["p_participant_id", "p_tenant_id"],
        ),
    ]
}

/// What each change is told, in order.
async fn ask_with_changes(client: &Client, request: &Request) -> Vec<Option<(String, String)>> {
    let mut told = Vec::new();
    for (changed, _) in changes(request) {
        told.push(refused(changed.call(client).await));
    }
    told
}

fn assert_conflicts(request: &Request, told: &[Option<(String, String)>]) {
    const ARGUMENTS: [&str; 4] = ["p_payload", "p_participant_id", "p_tenant_id", "p_rail_type"];
    for ((_, names), told) in changes(request).iter().zip(told) {
        let (code, text) = told.as_ref().unwrap_or_else(|| panic!("{names:?} was accepted"));
        assert_eq!(code, "P7004");
        for argument in ARGUMENTS {
            assert_eq!(
                text.contains(argument),
                names.contains(&argument),
                "{argument} in {text:?}"
            );
        }
        assert!(!text.contains("amount"), "a payload is confidential: {text}");
    }
}

#[tokio::test]
async fn another_argument_under_a_used_key_is_a_conflict_that_names_it() {
    let database = Database::new().await;
    let client = database.connect().await;
    let request = Request::new("p", "bank");
    request.call(&client).await.unwrap();
    assert_conflicts(&request, &ask_with_changes(&client, &request).await);

    let row = claim(&client, "w", 1).await.remove(0);
    complete(&client, "w", &row, "DISPATCHED").await.unwrap();
    assert_conflicts(&request, &ask_with_changes(&client, &request).await);
    assert_eq!(count(&client, "SELECT count(*) FROM outbox.payment_outbox_pending").await, 0);
}

#[tokio::test]
async fn without_the_comparison_a_conflict_is_a_silent_success() {
    let database = Database::new().await;
    let raise = "RAISE EXCEPTION USING ERRCODE = 'P7004',";
    database.take_out("find_same_enqueued", raise, "RAISE DEBUG USING ERRCODE = 'P7004',").await;
    let client = database.connect().await;
    let request = Request::new("p", "bank");
    request.call(&client).await.unwrap();
    let told = ask_with_changes(&client, &request).await;
    assert!(told.iter().all(Option::is_none), "{told:?}");
}

#[tokio::test]
async fn compared_as_numbers_two_payloads_would_be_one() {
    let database = Database::new().await;
    let guard = "v_was.payload::text <> p_payload::text THEN";
    database.take_out("find_same_enqueued", guard, "v_was.payload <> p_payload THEN").await;
    let client = database.connect().await;
    let request = Request::new("p", "bank");
    request.call(&client).await.unwrap();
    assert_eq!(ask_with_changes(&client, &request).await[0], None);
}

/// A participant of no tenant is asked for by a tenant, and the reverse.
async fn cross_tenants(client: &Client) -> [Option<String>; 2] {
    let tenant = Some(Uuid::new_v4());
    Request::new("p", "bank").call(client).await.unwrap();
    Request::new("q", "bank").with(|r| r.tenant = tenant).call(client).await.unwrap();
    [
        refusal(Request::new("p", "bank").with(|r| r.tenant = tenant).call(client).await),
        refusal(Request::new("q", "bank").call(client).await),
    ]
}

#[tokio::test]
async fn a_participant_of_another_tenant_is_refused() {
    let database = Database::new().await;
    let client = database.connect().await;
    assert_eq!(cross_tenants(&client).await, [Some("P7005".to_owned()), Some("P7005".to_owned())]);
    // Nothing of it stays: the next number is the second.
    assert_eq!(Request::new("p", "bank").call(&client).await.unwrap().sequence_id, 2);
}

#[tokio::test]
async fn without_the_tenant_check_a_participant_serves_two_tenants() {
    let database = Database::new().await;
    let raise = "RAISE EXCEPTION 'participant_id";
    database.take_out("bump_participant_outbox_seq", raise, "RAISE DEBUG 'participant_id").await;
    assert_eq!(cross_tenants(&database.connect().await).await, [None, None]);
}

#[tokio::test]
async fn headers_and_not_before_may_differ() {
    let database = Database::new().await;
    let client = database.connect().await;
    let request = Request::new("p", "bank");
    let first = request.call(&client).await.unwrap();
    let headers = request.with(|r| r.headers = Some(r#"{"trace": "2"}"#.to_owned()));
    let later = request.with(|r| r.not_before = Some("2030-01-01T00:00:00Z".to_owned()));
    for changed in [headers, later] {
        let again = changed.call(&client).await.unwrap();
        assert_eq!((again.outbox_id, again.is_new), (first.outbox_id, false));
    }
    let kept = "SELECT count(*) FROM outbox.payment_outbox_pending \
                WHERE headers = '{}' AND next_attempt_at <= clock_timestamp()";
    assert_eq!(count(&client, kept).await, 1);
}

#[tokio::test]
async fn the_rail_dlq_is_reserved() {
    let database = Database::new().await;
    let client = database.connect().await;
    let forged = Request::new("p", "dlq");
    assert_eq!(refusal(forged.call(&client).await).as_deref(), Some("P7104"));

    // Behind the check stands the table: a dead letter names the row that failed.
    database.take_out("enqueue_fault", "WHEN p_rail_type = 'dlq' THEN", "WHEN false THEN").await;
    let client = database.connect().await;
    assert_eq!(refusal(forged.call(&client).await).as_deref(), Some("23514"));
}

/// At repeatable read: the first participant's row is enqueued before (or after) the snapshot and
/// completed after it; then another participant asks for the same key.
async fn second_participant(database: &Database, enqueued_before: bool) -> Option<String> {
    let (worker, late) = (database.connect().await, database.connect().await);
    let request = Request::new("p", "bank");
    if enqueued_before {
        request.call(&worker).await.unwrap();
    }
    run(&late, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await;
    if !enqueued_before {
        request.call(&worker).await.unwrap();
    }
    let row = claim(&worker, "w", 1).await.remove(0);
    complete(&worker, "w", &row, "DISPATCHED").await.unwrap();
    refusal(request.with(|r| r.participant = "q".to_owned()).call(&late).await)
}

#[tokio::test]
async fn a_key_has_one_participant_even_under_an_old_snapshot() {
    assert_eq!(second_participant(&Database::new().await, true).await.as_deref(), Some("P7004"));
    // The snapshot cannot see who has the key: PostgreSQL says so, and a retry is told P7004.
    assert_eq!(second_participant(&Database::new().await, false).await.as_deref(), Some("40001"));
}

#[tokio::test]
async fn without_the_key_constraint_an_old_snapshot_uses_the_key_again() {
    for enqueued_before in [true, false] {
        let database = Database::new().await;
        let drop =
            "ALTER TABLE outbox.payment_outbox_keys DROP CONSTRAINT payment_outbox_keys_pkey";
        run(&database.connect().await, drop).await;
        assert_eq!(second_participant(&database, enqueued_before).await, None);
    }
}
