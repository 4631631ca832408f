//! An insert wakes who sleeps, and only then.

use std::future::poll_fn;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, Client, NoTls};

use super::calls::enqueue;
use super::steps::{pid, refusal, run, until_blocked};
use super::support::Database;

const NEW_WORK: (&str, &str) = ("outbox_pending", "new_work");

async fn listen(database: &Database) -> (Client, UnboundedReceiver<(String, String)>) {
    let (client, mut connection) = tokio_postgres::connect(&database.url(), NoTls).await.unwrap();
    let (heard, hears) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(told) = message {
                let _ = heard.send((told.channel().to_owned(), told.payload().to_owned()));
            }
        }
    });
    run(&client, "LISTEN outbox_pending; LISTEN marker").await;
    (client, hears)
}

/// What is heard of an insert: everything that comes before a marker sent after it.
async fn heard_of_an_insert(database: &Database) -> Vec<(String, String)> {
    let (_listener, mut hears) = listen(database).await;
    let producer = database.connect().await;
    enqueue(&producer, "p", "bank").await;
    run(&producer, "NOTIFY marker").await;
    let mut heard = Vec::new();
    loop {
        match hears.recv().await.unwrap() {
            (channel, _) if channel == "marker" => return heard,
            told => heard.push(told),
        }
    }
}

/// While a worker sleeps, with the key in its hand.
async fn heard_by_a_sleeper(database: &Database) -> Vec<(String, String)> {
    let sleeper = database.connect().await;
    run(&sleeper, "SELECT outbox.take_wake_up_key()").await;
    heard_of_an_insert(database).await
}

/// While a worker waits for the key, because another producer is still at work.
async fn heard_by_a_waiting_sleeper(database: &Database) -> Vec<(String, String)> {
    let (sleeper, producer, watcher) =
        (database.connect().await, database.connect().await, database.connect().await);
    run(&producer, "BEGIN").await;
    enqueue(&producer, "other", "bank").await;
    let waiting = pid(&sleeper).await;
    let asleep =
        tokio::spawn(async move { run(&sleeper, "SELECT outbox.take_wake_up_key()").await });
    until_blocked(&watcher, waiting).await;
    let heard = heard_of_an_insert(database).await;
    run(&producer, "COMMIT").await;
    asleep.await.unwrap();
    heard
}

fn new_work() -> Vec<(String, String)> {
    vec![(NEW_WORK.0.to_owned(), NEW_WORK.1.to_owned())]
}

#[tokio::test]
async fn an_insert_wakes_who_sleeps_or_is_about_to() {
    assert_eq!(heard_by_a_sleeper(&Database::new().await).await, new_work());
    assert_eq!(heard_by_a_waiting_sleeper(&Database::new().await).await, new_work());
}

#[tokio::test]
async fn an_insert_notifies_nobody_when_nobody_sleeps() {
    assert_eq!(heard_of_an_insert(&Database::new().await).await, []);
}

#[tokio::test]
async fn a_wake_up_can_be_switched_off() {
    let database = Database::new().await;
    let off = "SELECT outbox.set_outbox_settings('{\"wake_up\": false}', 'test', 'test')";
    run(&database.connect().await, off).await;
    assert_eq!(heard_by_a_sleeper(&database).await, []);

    let switch = "(SELECT s.wake_up FROM outbox.payment_outbox_settings AS s)";
    database.take_out("notify_outbox_pending", switch, "true").await;
    assert_eq!(heard_by_a_sleeper(&database).await, new_work(), "it was the switch");
}

/// Puts `instead` in the place of the trigger's look at the key.
async fn take_out_the_look(database: &Database, instead: &str) {
    const TRIGGER: &str = "SELECT pg_get_triggerdef(oid) FROM pg_trigger \
        WHERE tgname = 'payment_outbox_pending_notify'";
    const LOOK: &str =
        "WHEN ((NOT pg_try_advisory_xact_lock_shared('8391454533946209381'::bigint)))";
    let client = database.connect().await;
    let trigger: String = client.query_one(TRIGGER, &[]).await.unwrap().get(0);
    assert!(trigger.contains(LOOK), "{trigger}");
    let trigger = trigger.replace("CREATE TRIGGER", "CREATE OR REPLACE TRIGGER");
    run(&client, &trigger.replace(LOOK, &format!("WHEN ({instead})"))).await;
}

#[tokio::test]
async fn without_the_look_at_the_key_everybody_or_nobody_is_notified() {
    let database = Database::new().await;
    take_out_the_look(&database, "false").await;
    assert_eq!(heard_by_a_sleeper(&database).await, []);

    let database = Database::new().await;
    take_out_the_look(&database, "true").await;
    assert_eq!(heard_of_an_insert(&database).await, new_work());
}

/// Whether a producer can prepare its transaction.
async fn prepare(database: &Database) -> Option<String> {
    let producer = database.connect().await;
    run(&producer, "BEGIN").await;
    enqueue(&producer, "p", "bank").await;
    let prepared =
        producer.batch_execute(&format!("PREPARE TRANSACTION '{}'", database.name())).await;
    if prepared.is_ok() {
        run(&producer, &format!("COMMIT PREPARED '{}'", database.name())).await;
    }
    refusal(prepared)
}

#[tokio::test]
async fn a_transaction_can_be_prepared_when_nobody_sleeps() {
    assert_eq!(prepare(&Database::new().await).await, None);
}

#[tokio::test]
async fn a_transaction_that_notifies_cannot_be_prepared() {
    let database = Database::new().await;
    take_out_the_look(&database, "true").await;
    assert_eq!(prepare(&database).await.as_deref(), Some("0A000"));
}

/// A session that waits inside a statement holds a snapshot, and a second bridge may wait for hours.
#[tokio::test]
async fn a_sleeper_that_waits_for_the_key_is_sent_away_and_gets_it_when_it_is_free() {
    let database = Database::new().await;
    let (first, second) = (
        database.connect_as("symphony_executor").await,
        database.connect_as("symphony_executor").await,
    );
    let sooner = "ALTER FUNCTION outbox.take_wake_up_key() SET lock_timeout = '100ms'";
    run(&database.connect().await, sooner).await;
    let take = async |client: &Client| -> bool {
        client.query_one("SELECT outbox.take_wake_up_key()", &[]).await.unwrap().get(0)
    };
    assert!(take(&first).await);
    assert!(!take(&second).await);
    run(&first, "SELECT pg_advisory_unlock(outbox.wake_up_key())").await;
    assert!(take(&second).await);
    assert!(!take(&first).await, "the second one has kept it");
}
