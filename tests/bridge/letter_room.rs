//! A DLQ topic that takes less than the topics whose rows end in it.

use crate::process::Setup;
use crate::support::{Database, Topic};

#[tokio::test]
async fn a_dlq_topic_that_takes_less_than_the_payments_is_warned_of_at_the_start() {
    let (database, topic, letters) =
        (Database::new().await, Topic::new().await, Topic::new().await);
    topic.limit(3_000_000).await;
    let setup = Setup::kafka(&database, &topic).await;
    let dlq = format!("[dlq]\nrail = \"kafka\"\ntopic = \"{}\"\n", letters.name());
    let setup = setup.and(&dlq).env("TRESTLE_LOG", "debug");
    let words = format!("Give {} at least 3000000", letters.name());
    let warned = setup.run();
    warned.logged(&words).await;
    drop(warned);
    letters.limit(3_000_000).await;
    let bridge = setup.run();
    bridge.logged("its dead letters have room").await;
    assert!(!bridge.log().contains(&words), "{}", bridge.log());
}
