//! Two databases that deliver to one topic, on rails of the same name, with one register.

use std::collections::BTreeMap;

use super::scene::Scene;
use crate::rows::{all_done, enqueue, header, wait_for};
use crate::support::{Database, Record, Topic};

/// Another database that delivers where this one does, under another prefix.
async fn neighbour(scene: &Scene) -> Scene {
    let database = Database::new().await;
    let policies = "SELECT outbox.set_rail_policies('{\"kafka\": {\"delivery\": \"exactly_once\", \"shards\": 4}}', 'test', 'test')";
    database.connect().await.batch_execute(policies).await.unwrap();
    let prefix = "transactional_id_prefix = \"";
    let setup = scene.setup.clone().instead(prefix, &format!("{prefix}another-")).on(&database);
    let setup = setup.await;
    Scene { database, topic: Topic::unmade(), register: Topic::unmade(), setup }
}

/// Where each row of both is.
async fn together(scenes: [&Scene; 2]) -> BTreeMap<String, String> {
    let mut places = scenes[0].ledger().await;
    places.append(&mut scenes[1].ledger().await);
    places
}

async fn records(topic: &Topic) -> Vec<(String, String)> {
    let records = topic.consume_committed().await;
    let place = |at: &Record| {
        (header(at, "ce_id"), format!("{}/{}@{}", topic.name(), at.partition, at.offset))
    };
    records.iter().map(place).collect()
}

#[tokio::test]
async fn two_databases_with_a_prefix_each_share_a_topic_a_rail_name_and_a_register() {
    let first = Scene::new().await;
    let second = neighbour(&first).await;
    let ready = "the shard is ready";
    // Both begin with the same numbers.
    let mut doomed = first.setup.doomed("eos_committed");
    let mut worker = second.setup.run();
    doomed.logged_times(ready, 4).await;
    worker.logged_times(ready, 4).await;
    // The one dies with a batch that is committed and not recorded; the other goes on.
    enqueue(&first.database.connect().await, "kafka", 20, 200).await;
    doomed.ended().await;
    first.let_the_leases_pass().await;
    enqueue(&second.database.connect().await, "kafka", 20, 200).await;
    all_done(&second.database).await;
    worker.signal("KILL");
    worker.ended().await;
    second.let_the_leases_pass().await;
    let _heirs = [first.setup.run(), second.setup.run()];
    for scene in [&first, &second] {
        enqueue(&scene.database.connect().await, "kafka", 20, 200).await;
        all_done(&scene.database).await;
    }
    let records = records(&first.topic).await;
    assert_eq!(records.len(), 800);
    let read: BTreeMap<String, String> = records.into_iter().collect();
    assert_eq!(read, together([&first, &second]).await);
    let recovered = first.recovered().await;
    assert!(recovered.contains_key("RECOVERED_FROM_REGISTER"), "{recovered:?}");
}

/// Whatever is there and cannot be read may be what the last owner committed.
#[tokio::test]
async fn a_register_that_cannot_be_read_is_not_taken_for_an_empty_one() {
    let scene = Scene::with_shards(1, "").await;
    enqueue(&scene.database.connect().await, "kafka", 5, 20).await;
    let mut worker = scene.setup.run();
    all_done(&scene.database).await;
    worker.signal("TERM");
    assert!(worker.ended().await.success());
    let key = format!("{}/kafka/0", scene.topic.name());
    scene.register.produce(&[(&key, "{\"batch\": \"the last\"}")]).await;
    let heir = scene.setup.run();
    heir.logged("cannot be read").await;
    wait_for(
        &scene.database,
        "SELECT halted_reason LIKE '%cannot be read%' FROM outbox.payment_outbox_shards",
    )
    .await;
}
