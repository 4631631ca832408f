//! The tests' own tools: without them, no other test means anything.

use std::time::Duration;

use crate::support::{Database, Topic, trestle};

#[tokio::test]
async fn the_outbox_follows_a_clock_that_the_test_moves() {
    let database = Database::new().await;
    database.control_clock().await;
    database.advance(Duration::from_secs(3_600)).await;
    database.advance(Duration::from_millis(500)).await;
    let url = database.url_as("symphony_ingest").await;
    let row = ["--instruction=i", "--participant=p", "--key=k", "--rail=kafka", "--payload={}"];
    trestle(&url, &[["enqueue"].as_slice(), &row].concat()).assert().success();
    let ahead = "SELECT round(extract(epoch FROM created_at - clock_timestamp()))::int4 \
                 FROM outbox.payment_outbox_pending";
    let ahead: i32 = database.connect().await.query_one(ahead, &[]).await.unwrap().get(0);
    assert!((3_500..=3_601).contains(&ahead), "{ahead}");
}

#[tokio::test]
async fn a_member_of_a_group_role_has_its_rights_and_no_more() {
    let database = Database::new().await;
    let reader = database.connect_as("symphony_readonly").await;
    reader.query("SELECT FROM outbox.payment_outbox_pending", &[]).await.unwrap();
    let refused = reader.execute("DELETE FROM outbox.payment_outbox_pending", &[]).await;
    assert_eq!(refused.unwrap_err().code().unwrap().code(), "42501");
}

#[tokio::test]
async fn records_come_back_in_the_order_in_which_they_were_written() {
    let topic = Topic::new().await;
    topic.produce(&[("a", "1"), ("b", "2"), ("a", "3")]).await;
    let records = topic.consume(3).await;
    let values: Vec<&[u8]> = records.iter().map(|record| record.value.as_slice()).collect();
    assert_eq!(values, [b"1", b"2", b"3"]);
    assert_eq!(records[1].key.as_deref(), Some(b"b".as_slice()));
    assert_eq!(records[2].offset, 2);
}
