//! `trestle enqueue`

use std::io::Write as _;
use std::process::Stdio;

use tempfile::NamedTempFile;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::support::{Database, trestle};

const ROW: [&str; 9] = [
    "enqueue",
    "--instruction",
    "pay-1",
    "--participant",
    "alice",
    "--key",
    "k1",
    "--rail",
    "kafka",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [ROW.as_slice(), more].concat()
}

fn line(number: u32, payload: &str) -> String {
    format!(
        r#"{{"instruction_id":"pay-{number}","participant_id":"p{}","idempotency_key":"k","rail_type":"kafka","payload":{payload}}}"#,
        number % 7
    )
}

fn file(contents: impl AsRef<[u8]>) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), contents).unwrap();
    file
}

async fn text(database: &Database, query: &str) -> String {
    database.connect().await.query_one(query, &[]).await.unwrap().get(0)
}

struct Run {
    stdout: String,
    stderr: String,
}

fn enqueue_file(database: &Database, file: &NamedTempFile, more: &[&str], code: i32) -> Run {
    let arguments = [&["enqueue", "--file", file.path().to_str().unwrap()], more].concat();
    let run = trestle(&database.url(), &arguments).assert().code(code);
    Run {
        stdout: String::from_utf8_lossy(&run.get_output().stdout).into_owned(),
        stderr: String::from_utf8_lossy(&run.get_output().stderr).into_owned(),
    }
}

#[tokio::test]
async fn one_row_is_new_once_and_existing_after_that() {
    let database = Database::new().await;
    let tomorrow = (OffsetDateTime::now_utc() + time::Duration::DAY).replace_nanosecond(0).unwrap();
    let tomorrow = tomorrow.format(&Rfc3339).unwrap();
    let arguments = with(&[
        "--payload",
        r#"{"amount":12345678901234567890.10}"#,
        "--headers",
        r#"{"trace":"x"}"#,
        "--not-before",
        &tomorrow,
        "--tenant",
        "0190aaaa-0000-7000-8000-000000000001",
        "--json",
    ]);
    let mut answers = Vec::new();
    for expected in [true, false] {
        let run = trestle(&database.url(), &arguments).assert().success();
        let answer: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
        assert_eq!(answer["is_new"], expected);
        answers.push(answer);
    }
    assert_eq!(answers[0]["outbox_id"], answers[1]["outbox_id"]);
    let row = text(
        &database,
        "SELECT concat_ws(' ', payload, headers, tenant_id, \
             to_char(next_attempt_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')) \
         FROM outbox.payment_outbox_pending",
    )
    .await;
    assert_eq!(
        row,
        [
            r#"{"amount": 12345678901234567890.10}"#,
            r#"{"trace": "x"}"#,
            "0190aaaa-0000-7000-8000-000000000001",
            &tomorrow
        ]
        .join(" ")
    );
}

#[tokio::test]
async fn a_payload_comes_from_a_file_or_the_standard_input() {
    let database = Database::new().await;
    let payload = file("{\"a\":1}\n");
    let at = format!("@{}", payload.path().display());
    trestle(&database.url(), &with(&["--payload", &at])).assert().success();
    let again = trestle(&database.url(), &with(&["--payload", "-"]))
        .write_stdin("{\"a\":1}")
        .assert()
        .success();
    assert!(String::from_utf8_lossy(&again.get_output().stdout).contains("existing"));
}

#[tokio::test]
async fn another_payload_under_a_used_key_fails_without_showing_either() {
    let database = Database::new().await;
    trestle(&database.url(), &with(&["--payload", r#"{"a":"s3cret-1"}"#])).assert().success();
    let run =
        trestle(&database.url(), &with(&["--payload", r#"{"a":"s3cret-2"}"#])).assert().code(1);
    let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(message.contains("P7004") && !message.contains("s3cret"), "{message}");
}

#[tokio::test]
async fn what_the_database_refuses_is_said_of_the_flag_and_is_wrong_use() {
    let database = Database::new().await;
    let (long, ok) = ("x".repeat(2_000), ["--payload", "{}"]);
    for (flag, value, words) in [
        ("--rail", "Kafka", "--rail 'Kafka' is not a rail name"),
        ("--rail", "dlq", "--rail 'dlq' is reserved"),
        ("--participant", "", "--participant"),
        ("--key", &long, "--key"),
        ("--payload", "[1]", "--payload must be a JSON object, not array"),
        ("--headers", "{\"a\": 1}", "--headers"),
    ] {
        let mut arguments = with(&ok);
        match arguments.iter().position(|argument| *argument == flag) {
            Some(place) => arguments[place + 1] = value,
            None => arguments.extend([flag, value]),
        }
        let run = trestle(&database.url(), &arguments).assert().code(2);
        let message = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(message.contains(words) && !message.contains(" p_"), "{flag}: {message}");
    }
}

#[tokio::test]
async fn a_member_of_the_ingest_role_may_enqueue() {
    let database = Database::new().await;
    let url = database.url_as("symphony_ingest").await;
    trestle(&url, &with(&["--payload", "{}"])).assert().success();
    let url = database.url_as("symphony_readonly").await;
    let run = trestle(&url, &with(&["--payload", "{}"])).assert().code(1);
    assert!(String::from_utf8_lossy(&run.get_output().stderr).contains("lacks a right"));
}

#[tokio::test]
async fn a_database_without_the_outbox_is_explained() {
    let database = Database::empty().await;
    let run = trestle(&database.url(), &with(&["--payload", "{}"])).assert().code(1);
    assert!(String::from_utf8_lossy(&run.get_output().stderr).contains("trestle migrate"));
}

#[test]
fn wrong_arguments_exit_with_2() {
    for arguments in [
        vec!["enqueue"],
        vec!["enqueue", "--instruction", "only"],
        with(&["--payload", "{not json"]),
        with(&["--payload", "{}", "--headers", "nope"]),
        with(&["--payload", "{}", "--tenant", "nope"]),
        with(&["--payload", "{}", "--not-before", "tomorrow"]),
        with(&["--payload", "{}", "--file", "x"]),
        vec!["enqueue", "--file", "x", "--batch-rows", "0"],
    ] {
        trestle("postgres://127.0.0.1:1/d", &arguments).assert().code(2);
    }
}

#[test]
fn a_file_that_does_not_exist_fails_and_is_named() {
    let arguments = ["enqueue", "--file", "no-such.ndjson"];
    let run = trestle("postgres://127.0.0.1:1/d", &arguments).assert().code(1);
    assert!(String::from_utf8_lossy(&run.get_output().stderr).contains("no-such.ndjson"));
}

#[tokio::test]
async fn a_file_enqueued_twice_doubles_nothing() {
    let database = Database::new().await;
    let mut contents = Vec::new();
    for number in 0..2_500 {
        writeln!(contents, "{}", line(number, r#"{"amount":12345678901234567890.10}"#)).unwrap();
    }
    let rows = file(contents);
    let batches = ["--batch-rows", "400"];
    let first = enqueue_file(&database, &rows, &batches, 0);
    assert_eq!(first.stdout, "2500 new, 0 existing, 0 bad\n");
    let second = enqueue_file(&database, &rows, &["--json"], 0);
    assert_eq!(second.stdout, "{\"version\":1,\"new\":0,\"existing\":2500,\"bad\":0}\n");
    let exact = "SELECT count(*) FILTER (WHERE payload ->> 'amount' = '12345678901234567890.10') \
                 || ' of ' || count(*) FROM outbox.payment_outbox_pending";
    assert_eq!(text(&database, exact).await, "2500 of 2500");
    let order = "SELECT bool_and(substr(instruction_id, 5)::int = 7 * (sequence_id - 1) \
                     + substr(participant_id, 2)::int)::text FROM outbox.payment_outbox_pending";
    assert_eq!(text(&database, order).await, "true", "lines of a participant keep their order");
}

#[tokio::test]
async fn bad_lines_are_named_and_the_good_ones_enqueued() {
    let database = Database::new().await;
    let mut contents = Vec::new();
    for bytes in [
        line(1, "{}").as_bytes(),
        b"not json",
        b"",
        line(2, r#"{"s3cret":"a\u0000b"}"#).as_bytes(),
        b"[\"s3cret\"]",
        b"{\"instruction_id\":\"\xff\"}",
        line(3, r#"{"a":"\ud800 s3cret"}"#).as_bytes(),
        br#"{"instruction_id":"x","participant_id":"p","rail_type":"kafka","payload":{"a":"s3cret"}}"#,
        line(4, "{}").as_bytes(),
        line(5, r#"{"a":"s3cret"},"rail_type":"dlq""#).as_bytes(),
        line(6, r#"{"a":"s3cret"},"colour":"red""#).as_bytes(),
        line(7, r#"{"a":"s3cret"},"not_before":"soon""#).as_bytes(),
        line(8, "{}").as_bytes(),
        line(9, r#""s3cret""#).as_bytes(),
    ] {
        contents.extend_from_slice(bytes);
        contents.extend_from_slice(b"\r\n");
    }
    let run = enqueue_file(&database, &file(contents), &[], 1);
    assert_eq!(run.stdout, "3 new, 0 existing, 10 bad\n", "{}", run.stderr);
    for number in [2, 4, 5, 6, 7, 8, 10, 11, 12, 14] {
        assert!(run.stderr.contains(&format!("line {number}: ")), "{number}: {}", run.stderr);
    }
    assert!(run.stderr.contains("idempotency_key"), "{}", run.stderr);
    assert!(!run.stderr.contains("s3cret"), "{}", run.stderr);
    let kept = "SELECT string_agg(instruction_id, ' ' ORDER BY instruction_id) \
                FROM outbox.payment_outbox_pending";
    assert_eq!(text(&database, kept).await, "pay-1 pay-4 pay-8");
}

#[tokio::test]
async fn rows_are_read_from_the_standard_input() {
    let database = Database::new().await;
    let run = trestle(&database.url(), &["enqueue", "--file", "-"])
        .write_stdin(format!("{}\n{}", line(1, "{}"), line(2, "{}")))
        .assert()
        .success();
    assert_eq!(String::from_utf8_lossy(&run.get_output().stdout), "2 new, 0 existing, 0 bad\n");
}

#[tokio::test]
async fn a_lost_connection_says_how_far_it_came_and_that_running_again_is_safe() {
    let database = Database::new().await;
    let client = database.connect().await;
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("trestle"));
    command.args(["enqueue", "--file", "-", "--batch-rows", "2"]);
    command.current_dir(env!("CARGO_TARGET_TMPDIR")).env("DATABASE_URL", database.url());
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "{}\n{}", line(1, "{}"), line(2, "{}")).unwrap();
    let count = "SELECT count(*) FROM outbox.payment_outbox_pending";
    while client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) < 2 {
        tokio::task::yield_now().await;
    }
    let end = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity \
               WHERE datname = current_database() AND application_name = 'trestle'";
    assert!(client.query_one(end, &[]).await.unwrap().get::<_, bool>(0));
    writeln!(input, "{}\n{}", line(3, "{}"), line(4, "{}")).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    for part in ["connection", "the first 2 lines are done", "2 new", "not doubled"] {
        assert!(message.contains(part), "{message}");
    }
}
