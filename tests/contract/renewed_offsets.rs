//! From where on the topics are read when a shard that stood still is taken over.

use tokio_postgres::Client;

use super::calls::code;
use super::shards::{claim, complete, owned, take_over};
use super::steps::run;
use super::support::Database;

/// Says for w1, who knows of this batch, that the topics have gone on; returns where the database has them.
async fn renew(client: &Client, batch: i64, end: i64) -> i64 {
    run(client, &format!("SELECT outbox.renew_shard_offsets('w1', 'eos', 0::smallint, 1, {batch}, '{{\"t\": {{\"0\": {end}}}}}')")).await;
    let at = "SELECT (offsets -> 't' ->> '0')::int8 FROM outbox.payment_outbox_shards WHERE rail_type = 'eos' AND shard = 0";
    client.query_one(at, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_places_of_a_shard_that_stands_still_go_on_with_its_topics() {
    let database = Database::new().await;
    let client = owned(&database).await;
    assert_eq!(renew(&client, 0, 70).await, 70);
    let rows = claim(&client, "w1", 0, 1).await;
    assert_eq!(renew(&client, 1, 80).await, 70, "rows of the batch may be there already");
    complete(&client, "w1", &rows).await;
    assert_eq!(renew(&client, 1, 80).await, 80);
}

#[tokio::test]
async fn a_database_that_has_forgotten_a_batch_keeps_the_place_from_which_it_is_found() {
    let database = Database::new().await;
    let client = owned(&database).await;
    let before = renew(&client, 0, 70).await;
    assert_eq!(renew(&client, 1, 80).await, before);
}

#[tokio::test]
async fn only_the_owner_of_the_epoch_renews_them() {
    let database = Database::new().await;
    let client = owned(&database).await;
    take_over(&client).await;
    let late = "SELECT outbox.renew_shard_offsets('w1', 'eos', 0::smallint, 1, 0, '{}')";
    assert_eq!(code(&client.batch_execute(late).await.unwrap_err()), "P7014");
}
