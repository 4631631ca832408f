//! Topics that lose their beginning while a shard stands still, and that others write to.

use std::collections::BTreeMap;

use super::scene::Scene;
use crate::rows::{all_done, count, enqueue, wait_for};
use crate::support::Topic;

const HALTED: &str =
    "SELECT count(*) FROM outbox.payment_outbox_shards WHERE halted_at IS NOT NULL";

/// As retention does when everything is old enough. Marks of transactions stay where they are.
async fn delete_everything(topic: &Topic) {
    let mut ends = BTreeMap::new();
    for record in topic.consume_committed().await {
        ends.insert(record.partition, record.offset + 1);
    }
    for (partition, end) in ends {
        topic.delete_before(partition, end).await;
    }
}

async fn halted(scene: &Scene) -> i64 {
    scene.database.connect().await.query_one(HALTED, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_shard_that_stood_still_for_longer_than_the_retention_goes_on() {
    let scene = Scene::new().await;
    let client = scene.database.connect().await;
    enqueue(&client, "kafka", 20, 100).await;
    let mut worker = scene.setup.run();
    all_done(&scene.database).await;
    worker.signal("TERM");
    assert!(worker.ended().await.success());
    delete_everything(&scene.topic).await;
    let heir = scene.setup.run();
    heir.logged_times("the shard is ready", 4).await;
    assert_eq!(halted(&scene).await, 0);
    enqueue(&client, "kafka", 20, 100).await;
    all_done(&scene.database).await;
    assert_eq!(scene.topic.consume_committed().await.len(), 100);
}

/// A worker with nothing to do, in whose topic others have written what is gone already when its first
/// batch comes.
#[tokio::test]
async fn a_worker_knows_where_topics_end_that_others_write_to() {
    let scene = Scene::new().await;
    // What is done every fifteen seconds is done more often than once in one.
    let setup = scene.setup.clone().env("TRESTLE_HURRY", "20");
    let mut worker = setup.env("TRESTLE_FAILPOINT", "eos_sent").run();
    worker.logged_times("the shard is ready", 4).await;
    let foreign: Vec<String> = (0..60).map(|n| format!("key-{n}")).collect();
    let foreign: Vec<(&str, &str)> = foreign.iter().map(|key| (key.as_str(), "{}")).collect();
    scene.topic.produce(&foreign).await;
    let caught_up = format!(
        "SELECT bool_and((SELECT sum(e.value::bigint) FROM jsonb_each_text(s.offsets -> '{}') AS e) = 60) \
         FROM outbox.payment_outbox_shards AS s",
        scene.topic.name()
    );
    wait_for(&scene.database, &caught_up).await;
    delete_everything(&scene.topic).await;
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    worker.ended().await;
    scene.let_the_leases_pass().await;
    let _heir = scene.setup.run();
    scene.is_exact(100).await;
    assert_eq!(halted(&scene).await, 0);
}

/// The last batch is decided, and its topic deleted: nothing that is to be found out was there.
#[tokio::test]
async fn a_topic_that_was_deleted_halts_no_shard_without_a_batch_under_way() {
    let scene = Scene::with_shards(1, "").await;
    let client = scene.database.connect().await;
    let other = Topic::with_partitions(2).await;
    let named = |topic: &Topic| format!("topic = \"{}\"", topic.name());
    let to_other = scene.setup.clone().instead(&named(&scene.topic), &named(&other));
    enqueue(&client, "kafka", 10, 50).await;
    let mut worker = to_other.run();
    all_done(&scene.database).await;
    worker.signal("TERM");
    assert!(worker.ended().await.success());
    assert_eq!(other.consume_committed().await.len(), 50);
    drop(other);
    let heir = scene.setup.run();
    heir.logged("the shard is ready").await;
    enqueue(&client, "kafka", 10, 50).await;
    all_done(&scene.database).await;
    assert_eq!(scene.topic.consume_committed().await.len(), 50);
    assert_eq!(halted(&scene).await, 0);
}

/// What was sent is deleted as well: nobody can tell any more, and nothing is sent on a guess.
#[tokio::test]
async fn a_shard_whose_beginning_is_forgotten_and_deleted_halts() {
    let mut scene = Scene::with_shards(1, "").await;
    enqueue(&scene.database.connect().await, "kafka", 20, 100).await;
    scene.deliver_and_forget().await;
    delete_everything(&scene.topic).await;
    let heir = scene.setup.run();
    heir.logged("the shard is halted until an operator decides").await;
    assert_eq!(count(&scene.database, "DISPATCHED").await, 0);
    let resume =
        "SELECT outbox.resume_outbox_shard('kafka', 0::smallint, 'anna', 'consumers are told')";
    scene.database.connect().await.batch_execute(resume).await.unwrap();
    all_done(&scene.database).await;
    assert_eq!(count(&scene.database, "DISPATCHED").await, 100);
}
