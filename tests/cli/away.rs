//! A database that goes away in the middle of a command: it is said, and nothing is half done.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio_postgres::Client;

use crate::operator::COMMANDS;
use crate::scene::{busy, fail, failed_id, open, run};
use crate::support::Database;
use crate::support::proxy::{Mode, Proxy};

const LOST: &str = "the connection to the database was lost";
const EVERYTHING: &str = "BEGIN; LOCK TABLE outbox.payment_outbox_pending, outbox.payment_outbox_attempts, \
    outbox.payment_outbox_events, outbox.payment_outbox_lanes, outbox.payment_outbox_turns, \
    outbox.payment_outbox_failures, outbox.payment_outbox_partitions, outbox.payment_outbox_rail_policies, \
    outbox.payment_outbox_settings IN ACCESS EXCLUSIVE MODE";

fn start(url: &str, arguments: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
        .args(arguments)
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("DATABASE_URL", url)
        .env("USER", "ann")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// What it says, and that it failed.
fn failed(mut child: Child) -> String {
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{message}");
    message
}

/// Waits until the question is answered with yes.
async fn until(client: &Client, question: &str) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !client.query_one(question, &[]).await.unwrap().get::<_, bool>(0) {
        assert!(Instant::now() < patience, "never: {question}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn cut(proxy: &Proxy) {
    proxy.set(Mode::TurnAway);
    proxy.cut();
}

const WAITS: &str = "SELECT EXISTS (SELECT FROM pg_stat_activity \
    WHERE datname = current_database() AND wait_event_type = 'Lock')";

/// Each command gets as far as its first look at the outbox, which somebody has locked.
#[tokio::test]
async fn every_command_says_that_the_database_went_away() {
    const END: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let (database, client) = busy().await;
    let id = failed_id(&client, "pay-1").await.to_string();
    let before = open(&client).await;
    let owner = database.connect().await;
    for command in COMMANDS {
        let command: Vec<&str> =
            command.iter().map(|word| if word.len() == id.len() { &id } else { *word }).collect();
        let proxy = Proxy::to_postgres();
        owner.batch_execute(EVERYTHING).await.unwrap();
        let child = start(&proxy.instead_in(&database.url()), &command);
        until(&client, WAITS).await;
        cut(&proxy);
        // The server would go on with what it was asked: it is gone as well.
        client.query_one(END, &[]).await.unwrap();
        let message = tokio::task::spawn_blocking(move || failed(child)).await.unwrap();
        assert!(message.contains(LOST), "{command:?}: {message}");
        let acts =
            command[0] == "repair" || (command.contains(&"--reason") && command[1] != "replay");
        assert_eq!(message.contains("look before you do it again"), acts, "{command:?}: {message}");
        owner.batch_execute("ROLLBACK").await.unwrap();
    }
    assert_eq!(open(&client).await, before);
    let acts = "SELECT count(*) FROM outbox.payment_outbox_events WHERE actor = 'ann'";
    assert_eq!(client.query_one(acts, &[]).await.unwrap().get::<_, i64>(0), 0);
}

/// What was found until then is shown, and what happened last.
fn doctors_report(mut child: Child) -> Vec<serde_json::Value> {
    let mut shown = String::new();
    child.stdout.take().unwrap().read_to_string(&mut shown).unwrap();
    assert!(failed(child).contains("1 of the checks failed"));
    let mut shown: serde_json::Value = serde_json::from_str(&shown).expect("one JSON document");
    let checks = shown["checks"].as_array_mut().unwrap();
    let later = checks.iter().position(|check| check["check"] == "admin.listen").unwrap();
    assert!(checks[..later].iter().any(|check| check["check"] == "database clock"), "{checks:?}");
    checks.drain(..later).collect()
}

#[tokio::test]
async fn the_doctor_says_that_the_database_went_away_or_fell_silent() {
    let (database, proxy) = (Database::new().await, Proxy::to_postgres());
    let client = database.connect().await;
    let owner = database.connect().await;
    owner.batch_execute(EVERYTHING).await.unwrap();
    // A bridge's login, whose rights are no failure.
    let url = database.url_as("symphony_executor").await;
    let silent = start(&url, &["doctor", "--json"]);
    let gone = start(&proxy.instead_in(&url), &["doctor", "--json"]);
    let both = "SELECT count(*) = 2 FROM pg_stat_activity \
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    until(&client, both).await;
    cut(&proxy);
    for (child, words, mend) in
        [(gone, LOST, "start the server"), (silent, "did not answer within", "pg_blocking_pids")]
    {
        let checks = tokio::task::spawn_blocking(move || doctors_report(child)).await.unwrap();
        let last = checks.last().unwrap();
        assert_eq!((&last["check"], &last["verdict"]), (&"database".into(), &"fail".into()));
        assert!(last["found"].as_str().unwrap().contains(words), "{last}");
        assert!(last["mend"].as_str().unwrap().contains(mend), "{last}");
    }
}

#[tokio::test]
async fn an_enqueue_whose_answer_got_lost_can_be_repeated() {
    let (database, proxy) = (Database::new().await, Proxy::to_postgres());
    let (client, owner) = (database.connect().await, database.connect().await);
    let row = ["--instruction=i", "--participant=p", "--key=k", "--rail=kafka", "--payload={}"];
    let enqueue = [["enqueue"].as_slice(), &row].concat();
    owner.batch_execute(EVERYTHING).await.unwrap();
    let child = start(&proxy.instead_in(&database.url()), &enqueue);
    until(&client, WAITS).await;
    cut(&proxy);
    let message = tokio::task::spawn_blocking(move || failed(child)).await.unwrap();
    assert!(message.contains("run the same command again"), "{message}");
    assert!(message.contains(LOST), "{message}");
    owner.batch_execute("ROLLBACK").await.unwrap();
    run(&database.url(), &enqueue, 0);
    let rows = "SELECT count(*) FROM outbox.payment_outbox_pending";
    assert_eq!(client.query_one(rows, &[]).await.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test]
async fn a_watch_ends_with_what_happened() {
    let (database, proxy) = (Database::new().await, Proxy::to_postgres());
    let mut child = start(&proxy.instead_in(&database.url()), &["status", "--watch", "--json"]);
    let mut first = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    assert!(first.contains("\"version\":1"), "{first}");
    cut(&proxy);
    assert!(failed(child).contains(LOST));
}

#[tokio::test]
async fn a_replay_that_is_cut_off_says_how_far_it_came() {
    let (database, proxy) = (Database::new().await, Proxy::to_postgres());
    let client = database.connect().await;
    fail(&client, &[("a", "a", "kafka"), ("b", "b", "kafka"), ("c", "c", "kafka")]).await;
    let arguments = ["dlq", "replay", "--rail", "kafka", "--rate", "1", "--reason", "x", "--yes"];
    let child = start(&proxy.instead_in(&database.url()), &arguments);
    until(
        &client,
        "SELECT count(*) = 2 FROM outbox.outbox_failure_status WHERE resolution IS NULL",
    )
    .await;
    cut(&proxy);
    let message = failed(child);
    let next = failed_id(&client, "b").await;
    let words =
        format!("stopped after 1 of 3 rows; whether {next} was replayed is not known, the rest is");
    assert!(message.contains(&words), "{message}");
    assert!(message.contains(LOST), "{message}");
    assert_eq!(open(&client).await.len(), 2);
}

#[tokio::test]
async fn an_import_that_is_cut_off_says_where_and_can_be_repeated() {
    let (database, proxy) = (Database::new().await, Proxy::to_postgres());
    let client = database.connect().await;
    let line = |n: usize| {
        format!(
            "{{\"instruction_id\": \"i{n}\", \"participant_id\": \"p\", \"idempotency_key\": \"k\", \"rail_type\": \"kafka\", \"payload\": {{}}}}\n"
        )
    };
    let arguments = ["enqueue", "--file", "-", "--batch-rows", "1"];
    let mut child = start(&proxy.instead_in(&database.url()), &arguments);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(line(1).as_bytes()).unwrap();
    until(&client, "SELECT count(*) = 1 FROM outbox.payment_outbox_pending").await;
    cut(&proxy);
    // It may have noticed already.
    let _ = stdin.write_all(line(2).as_bytes());
    drop(stdin);
    let message = failed(child);
    assert!(message.contains(LOST) && message.contains("the first 1 lines are done"), "{message}");
}
