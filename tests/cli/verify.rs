//! `trestle verify`: what it finds.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::scene::run;
use crate::support::Topic;
use crate::verify_scene::{Row, Scene, record};

/// How many of each kind: missing, duplicate, out of order, foreign, misplaced.
fn wrong(report: &Value) -> [u64; 5] {
    ["missing", "duplicate", "out_of_order", "foreign", "misplaced"]
        .map(|kind| report[kind].as_u64().unwrap())
}

fn consumer(report: &Value) -> Value {
    let consumer = &report["consumer"];
    json!([consumer["takes"], consumer["drops"], consumer["loses"]])
}

#[tokio::test]
async fn what_the_bridge_has_delivered_agrees_with_its_ledger() {
    let scene = Scene::with_partitions(3).await;
    scene.deliver(&["alice", "bob", "alice", "carol", "bob", "alice"]).await;
    let shown = scene.verify(&[], 0).await.stdout;
    let expected = format!(
        "Topic {}: 6 records in 3 partitions.\nLedger: 6 rows delivered there. Each is there once, in order.\n",
        scene.topic.name()
    );
    assert_eq!(shown, expected);
    for role in ["symphony_operator", "symphony_readonly"] {
        let url = scene.database.url_as(role).await;
        run(&url, &["--config", &scene.file(), "verify"], 0);
    }
    let report = scene.report(&[], 0).await;
    assert_eq!((&report["records"], &report["rows"]), (&json!(6), &json!(6)));
    assert_eq!(wrong(&report), [0; 5]);
    assert_eq!(report["lanes"], json!([]));
}

#[tokio::test]
async fn dead_letters_have_a_topic_of_their_own() {
    let scene = Scene::new().await;
    let dead = crate::support::Topic::new().await;
    scene.configure(&format!("[dlq]\nrail = \"kafka\"\ntopic = \"{}\"\n", dead.name()));
    let rows = scene.claimed(&["alice", "bob"]).await;
    for row in rows {
        scene.complete(row, "FAILED", "").await;
    }
    scene.deliver(&["alice"]).await;
    for arguments in [["--rail", "dlq"], ["--topic", dead.name()]] {
        let report = scene.report(&arguments, 0).await;
        assert_eq!((&report["records"], &report["rows"]), (&json!(2), &json!(2)));
    }
    assert_eq!(scene.report(&[], 0).await["rows"], 1);
}

/// There may be any number of them: the ledger knows which were used.
#[tokio::test]
async fn topics_of_tenants_are_those_that_the_ledger_names() {
    let scene = Scene::new().await;
    let tenants = [Uuid::new_v4(), Uuid::new_v4()];
    let mut topics = tenants.map(|tenant| Topic::called(&format!("pay.{tenant}")));
    for topic in &mut topics {
        topic.make(2).await;
    }
    std::fs::write(
        scene.file(),
        "[rails.kafka]\nkind = \"kafka\"\ntopic = \"pay.{tenant}\"\nschema = \"any\"\n",
    )
    .unwrap();
    for (tenant, instruction) in [(0, "a"), (1, "b"), (1, "c")] {
        let call = "SELECT outbox.enqueue_payment_outbox($1, $2, 'k', 'kafka', '{}', '{}', $3)";
        let participant = format!("p{tenant}");
        scene.client.execute(call, &[&instruction, &participant, &tenants[tenant]]).await.unwrap();
    }
    scene.deliver(&[]).await;
    let mut expected = tenants.map(|tenant| format!("pay.{tenant}"));
    expected.sort_unstable();
    let report = scene.report(&[], 0).await;
    let read: Vec<&str> =
        report["topics"].as_array().unwrap().iter().map(|t| t["topic"].as_str().unwrap()).collect();
    assert_eq!(read, expected);
    let rows = |report: &Value| {
        report["topics"][0]["rows"].as_u64().unwrap()
            + report["topics"][1]["rows"].as_u64().unwrap()
    };
    assert_eq!(rows(&report), 3);

    topics[1].produce(&[("mallory", "x")]).await;
    let report = scene.report(&[], 1).await;
    let agrees = |n: usize| report["topics"][n]["agrees"].as_bool().unwrap();
    assert_eq!([agrees(0), agrees(1)], [0, 1].map(|n| expected[n] != topics[1].name()));
    let shown = run(&scene.database.url(), &["--config", &scene.file(), "verify"], 1).stdout;
    for topic in &topics {
        assert_eq!(shown.matches(&format!("Topic {}: ", topic.name())).count(), 1, "{shown}");
    }
    // One of them alone.
    assert_eq!(scene.report(&["--topic", topics[0].name()], 0).await["rows"], 1);
}

#[tokio::test]
async fn a_row_that_is_not_in_the_topic_is_missing() {
    let scene = Scene::new().await;
    scene.deliver(&["alice", "alice"]).await;
    let lost = scene.claimed(&["bob"]).await[0];
    scene.record(lost, "0@1").await;
    let shown = scene.verify(&[], 1).await;
    assert!(shown.stderr.contains("the topic and the ledger do not agree"), "{}", shown.stderr);
    assert!(shown.stdout.contains(&format!("missing {} bob #1", lost.id)), "{}", shown.stdout);
    let report = scene.report(&[], 1).await;
    assert_eq!(wrong(&report), [1, 0, 0, 0, 0]);
    assert_eq!(report["lanes"][0]["participant_id"], "bob");
    assert_eq!(report["examples"][0]["outbox_id"], lost.id.to_string());
}

/// The documented window: a bridge that dies between the broker's answer and the commit.
#[tokio::test]
async fn duplicates_are_told_apart_from_rows_that_a_consumer_would_lose() {
    let scene = Scene::with_partitions(2).await;
    scene.deliver(&["alice", "alice", "alice", "bob"]).await;
    let records = scene.topic.consume_all().await;
    // The first two of alice come again, after her third.
    let alices = records.iter().filter(|record| record.key.as_deref() == Some(b"alice"));
    let again: Vec<_> = alices.take(2).cloned().collect();
    scene.topic.repeat(&again).await;
    let report = scene.report(&[], 1).await;
    assert_eq!(wrong(&report), [0, 2, 0, 0, 0]);
    assert_eq!(consumer(&report), json!([4, 2, 0]));
    let shown = scene.verify(&[], 1).await.stdout;
    assert!(shown.contains("4 records and drops 2, all of them duplicates."), "{shown}");
}

#[tokio::test]
async fn a_first_record_behind_a_later_one_of_its_lane_is_out_of_order() {
    let scene = Scene::new().await;
    let rows = scene.claimed(&["alice", "alice", "alice", "bob"]).await;
    for (place, index) in [0, 2, 1, 3].into_iter().enumerate() {
        let participant = if index == 3 { "bob" } else { "alice" };
        scene.write(0, participant, rows[index]).await;
        assert!(place < 4);
    }
    for (row, place) in rows.iter().zip(["0@0", "0@2", "0@1", "0@3"]) {
        scene.record(*row, place).await;
    }
    let report = scene.report(&[], 1).await;
    assert_eq!(wrong(&report), [0, 0, 1, 0, 0]);
    assert_eq!(consumer(&report), json!([3, 1, 1]));
    assert_eq!(report["examples"][0]["sequence_id"], 2);
    scene.configure("ordering = \"none\"\n");
    assert_eq!(wrong(&scene.report(&[], 0).await), [0; 5], "on a rail without order it is none");
}

#[tokio::test]
async fn what_the_ledger_does_not_have_as_delivered_here_is_foreign() {
    let scene = Scene::new().await;
    let rows = scene.claimed(&["alice", "bob", "carol"]).await;
    for (row, participant) in rows.iter().zip(["alice", "bob", "carol"]) {
        scene.write(0, participant, *row).await;
    }
    scene.record(rows[0], "0@0").await;
    scene.complete(rows[1], "FAILED", "").await;
    scene.complete(rows[2], "DISPATCHED", "other/0@2").await;
    scene.write(0, "dave", Row { id: Uuid::new_v4(), sequence_id: 1 }).await;
    scene.topic.produce(&[("erin", "no headers at all")]).await;
    let report = scene.report(&[], 1).await;
    assert_eq!(wrong(&report), [0, 0, 0, 4, 0]);
    let why: Vec<_> = report["examples"].as_array().unwrap().iter().collect();
    for (participant, words) in [
        ("erin", "its headers name no row"),
        ("bob", "is FAILED in the ledger"),
        ("carol", "was delivered elsewhere: other/0@2"),
        ("dave", "is no row of this outbox"),
    ] {
        let found = why.iter().find(|example| example["participant_id"] == participant);
        assert_eq!(found.unwrap()["why"], words, "{participant}");
    }
    scene.verify(&[], 1).await;
}

#[tokio::test]
async fn a_record_that_is_not_where_the_ledger_has_it_is_misplaced() {
    let scene = Scene::with_partitions(2).await;
    let rows = scene.claimed(&["alice", "bob"]).await;
    scene.write(0, "alice", rows[0]).await;
    scene.write(1, "bob", rows[1]).await;
    scene.record(rows[0], "1@0").await;
    // The broker did not say where, only that it had it already.
    scene.record(rows[1], "1").await;
    let report = scene.report(&[], 1).await;
    assert_eq!(wrong(&report), [0, 0, 0, 0, 1]);
    let why = report["examples"][0]["why"].as_str().unwrap();
    assert!(why.starts_with("the ledger has it at "), "{why}");
}

#[tokio::test]
async fn rows_under_way_are_neither_missing_nor_foreign() {
    let scene = Scene::new().await;
    let rows = scene.claimed(&["alice", "bob"]).await;
    scene.write(0, "alice", rows[0]).await;
    // Delivered after the topic was read: its record is where the topic does not go yet.
    scene.record(rows[1], "0@1").await;
    let report = scene.report(&[], 0).await;
    assert_eq!((&report["unrecorded"], &report["after"]), (&json!(1), &json!(1)));
    let shown = scene.verify(&[], 0).await.stdout;
    assert!(shown.contains("1 rows are in the topic, and their outcome is not recorded yet"));
}

#[tokio::test]
async fn what_the_topic_has_deleted_is_not_missing_and_a_late_duplicate_no_disorder() {
    let scene = Scene::new().await;
    let rows = scene.claimed(&["alice", "alice", "alice"]).await;
    for row in &rows {
        scene.write(0, "alice", *row).await;
    }
    let mut again = record(0, "alice", rows[0]);
    again.headers[1].1 = b"2".to_vec();
    scene.topic.repeat(&[again]).await;
    for (row, place) in rows.iter().zip(["0@3", "0@1", "0@2"]) {
        scene.record(*row, place).await;
    }
    assert_eq!(wrong(&scene.report(&[], 1).await), [0, 1, 0, 0, 0]);
    scene.topic.delete_before(0, 2).await;
    let report = scene.report(&[], 1).await;
    assert_eq!(wrong(&report), [0, 1, 0, 0, 0]);
    assert_eq!((&report["records"], &report["before"]), (&json!(2), &json!(1)));
}

#[tokio::test]
async fn rows_that_are_archived_are_not_compared() {
    let scene = Scene::new().await;
    scene.deliver(&["alice", "bob"]).await;
    scene.database.control_clock().await;
    scene.database.advance(std::time::Duration::from_secs(20 * 86_400)).await;
    // A pass notes that a partition is over; a later one archives it, when no older transaction is open.
    let archived = "SELECT count(*) FROM outbox.run_outbox_upkeep() WHERE action = 'archived' AND partition_name ~ 'attempts'";
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while scene.client.query_one(archived, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(std::time::Instant::now() < until, "it is never archived");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let report = scene.report(&[], 0).await;
    assert_eq!((&report["archived"], &report["rows"]), (&json!(2), &json!(0)));
}

#[tokio::test]
async fn a_lane_in_two_partitions_is_told_and_each_has_an_order_of_its_own() {
    let scene = Scene::with_partitions(2).await;
    let rows = scene.claimed(&["alice", "alice"]).await;
    scene.write(1, "alice", rows[1]).await;
    scene.write(0, "alice", rows[0]).await;
    scene.record(rows[0], "0@0").await;
    scene.record(rows[1], "1@0").await;
    assert_eq!(scene.report(&[], 0).await["spread_lanes"], 1);
}

#[tokio::test]
async fn records_before_the_asked_time_are_not_read() {
    let scene = Scene::new().await;
    scene.topic.produce_at(&[("mallory", "old")], std::time::Duration::from_secs(7_200)).await;
    scene.deliver(&["alice"]).await;
    assert_eq!(wrong(&scene.report(&[], 1).await), [0, 0, 0, 1, 0]);
    let report = scene.report(&["--since", "1h"], 0).await;
    assert_eq!((&report["records"], &report["rows"]), (&json!(1), &json!(1)));
    scene.verify(&["--since", "yesterday"], 2).await;
}

#[tokio::test]
async fn what_a_transaction_took_back_was_never_there() {
    let scene = Scene::new().await;
    scene.deliver(&["alice"]).await;
    scene.topic.produce_aborted(&[("mallory", "never")]).await;
    let report = scene.report(&[], 0).await;
    assert_eq!(report["records"], 1);
}
