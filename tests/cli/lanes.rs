//! `trestle lanes`

use serde_json::json;

use crate::scene::{assert_fits, busy, document, enqueue, run};
use crate::support::Database;

#[tokio::test]
async fn lanes_that_wait_are_listed_with_their_reason() {
    let (database, _client) = busy().await;
    let shown = run(&database.url(), &["lanes", "list"], 0).stdout;
    assert_fits(&shown);
    let first: Vec<&str> =
        shown.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(["bob", "erin", "carol"].iter().all(|who| first.contains(who)), "{shown}");
    assert!(!first.contains(&"dave") && !first.contains(&"alice"), "{shown}");
    let all = document(&database.url(), &["lanes", "list", "--all", "--rail", "kafka"]);
    let states: Vec<_> = all["lanes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lane| json!([lane["participant_id"], lane["state"], lane["pending_rows"]]))
        .collect();
    assert_eq!(
        states,
        [
            json!(["erin", "paused", 0]),
            json!(["alice", "due", 1]),
            json!(["dave", "leased", 1]),
            json!(["carol", "delayed", 1]),
        ]
    );
    assert_eq!(all["truncated"], false);
    let one = run(&database.url(), &["lanes", "list", "--all", "--limit", "1"], 0).stdout;
    assert!(one.contains("bob") && one.contains("--limit"), "{one}");
}

#[tokio::test]
async fn no_lane_is_said_in_words() {
    let database = Database::new().await;
    assert_eq!(run(&database.url(), &["lanes", "list"], 0).stdout, "No lane waits.\n");
    let nobody = ["lanes", "list", "--participant", "nobody"];
    assert_eq!(run(&database.url(), &nobody, 0).stdout, "No such lane.\n");
    assert_eq!(document(&database.url(), &nobody)["lanes"], json!([]));
}

#[tokio::test]
async fn a_lane_is_paused_and_resumed_once_with_who_and_why() {
    let database = Database::new().await;
    let client = database.connect().await;
    let url = database.url_as("symphony_operator").await;
    let pause = ["lanes", "pause", "alice", "kafka", "--reason", "under review"];
    assert_eq!(run(&url, &pause, 0).stdout, "The lane of alice on kafka is paused.\n");
    let again = run(&url, &pause, 1).stderr;
    assert!(again.contains("already paused") && again.contains("hint: "), "{again}");
    let resume = ["lanes", "resume", "alice", "kafka", "--reason", "cleared", "--actor", "eve"];
    assert_eq!(document(&url, &resume)["done"], "resumed");
    assert!(run(&url, &resume, 1).stderr.contains("P70"));
    let events = "SELECT string_agg(concat_ws(' ', event_type, actor, reason), '; ' ORDER BY event_id) \
                  FROM outbox.payment_outbox_events WHERE participant_id = 'alice'";
    let events: String = client.query_one(events, &[]).await.unwrap().get(0);
    assert_eq!(events, "LANE_PAUSED ann under review; LANE_RESUMED eve cleared");
}

#[tokio::test]
async fn the_head_of_a_lane_is_skipped_and_the_next_row_stays() {
    let database = Database::new().await;
    let client = database.connect().await;
    for instruction in ["pay-1", "pay-2"] {
        enqueue(&client, instruction, "alice", "kafka").await;
    }
    let skip = ["lanes", "skip", "alice", "kafka", "--reason", "void"];
    let shown = run(&database.url_as("symphony_operator").await, &skip, 0).stdout;
    let id = crate::scene::failed_id(&client, "pay-1").await;
    assert_eq!(shown, format!("Skipped {id}: the lane of alice on kafka goes on.\n"));
    assert_eq!(crate::scene::open(&client).await, ["pay-1"]);
    let list = ["lanes", "list", "--participant", "alice", "--rail", "kafka"];
    assert_eq!(document(&database.url(), &list)["lanes"][0]["head_sequence_id"], 2);
}

#[tokio::test]
async fn a_leased_head_or_a_lane_that_is_not_there_is_not_skipped() {
    let (database, _client) = busy().await;
    let skip =
        |who| run(&database.url(), &["lanes", "skip", who, "kafka", "--reason", "x"], 1).stderr;
    let leased = skip("dave");
    assert!(leased.contains("is leased") && leased.contains("pause the lane first"), "{leased}");
    let nobody = skip("nobody");
    assert!(nobody.contains("no lane") && nobody.contains("lanes list --all"), "{nobody}");
}

#[tokio::test]
async fn an_act_without_a_good_reason_lane_or_right_does_nothing() {
    let database = Database::new().await;
    for (wrong, expected) in [
        (vec!["lanes", "pause", "alice", "kafka"], "--reason"),
        (vec!["lanes", "pause", "alice", "kafka", "--reason", " "], "--reason is empty"),
        (
            vec!["lanes", "pause", "alice", "kafka", "--reason", "x", "--actor", ""],
            "--actor is empty",
        ),
        (vec!["lanes", "pause", "alice", "No Rail", "--reason", "x"], "P7103"),
        (vec!["lanes", "pause", "", "kafka", "--reason", "x"], "P7101"),
        (vec!["lanes", "list", "--limit", "0"], "--limit"),
    ] {
        let message = run(&database.url(), &wrong, 2).stderr;
        assert!(message.contains(expected), "{wrong:?}: {message}");
    }
    let url = database.url_as("symphony_readonly").await;
    let pause = ["lanes", "pause", "alice", "kafka", "--reason", "x"];
    assert!(run(&url, &pause, 1).stderr.contains("lacks a right"));
    assert_eq!(document(&database.url(), &["lanes", "list", "--all"])["lanes"], json!([]));
}
