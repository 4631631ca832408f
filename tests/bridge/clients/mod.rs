//! What kcat, confluent-kafka and kafkajs read of the records that the bridge has written, compared
//! with what docs/consume.md promises. They read by the programs of examples/consumers.

mod documented;
mod programs;
mod promised;
mod scene;

use std::collections::{BTreeMap, BTreeSet};

use programs::{Clients, Printed};
use scene::Scene;

#[tokio::test]
async fn every_client_reads_key_value_and_headers_as_documented() {
    let Some(clients) = Clients::find() else { return };
    let scene = Scene::delivered().await;
    let promised = promised::records(&scene).await;
    let all = clients.kcat(&scene.topic).await;
    assert_eq!(by_place(&all), by_place(&promised), "kcat");
    for printed in clients.consume(&scene.topic, &all).await {
        assert_eq!(by_place(&printed), by_place(&promised));
        assert_in_order(&printed);
    }
    let own = ["purpose", "empty"].map(str::to_owned);
    assert_eq!(names(fullest(&all)), &documented::in_a_record() | &own.into());
}

#[tokio::test]
async fn every_client_reads_a_dead_letter_as_documented() {
    let Some(clients) = Clients::find() else { return };
    let scene = Scene::delivered().await;
    let promised = promised::dead_letters(&scene).await;
    let all = clients.kcat(&scene.dlq).await;
    assert_eq!(by_place(&all), by_place(&promised), "kcat");
    for printed in clients.consume(&scene.dlq, &all).await {
        assert_eq!(by_place(&printed), by_place(&promised));
    }
    let documented = &documented::in_a_record() | &documented::in_a_dead_letter();
    let seen = names(fullest(&all));
    // A refusal by the bridge itself has no code of the rail's own, and these letters are whole.
    assert_eq!(&documented - &seen, ["dlq_rail_code", "dlq_shortened"].map(str::to_owned).into());
    assert_eq!(&seen - &documented, ["mine".to_owned()].into());
    for letter in &all {
        documented::assert_fits_the_schema(letter);
    }
}

/// kcat shows the duplicates, so they are there; the consumers do not hand them on.
#[tokio::test]
async fn the_consumers_drop_what_comes_twice_and_nothing_else() {
    let Some(clients) = Clients::find() else { return };
    let scene = Scene::delivered().await;
    let once = promised::records(&scene).await.len();
    let letters = promised::dead_letters(&scene).await;
    scene.topic.repeat(&scene.topic.consume(once).await).await;
    scene.dlq.repeat(&scene.dlq.consume(letters.len()).await).await;
    scene.deliver_one_more().await;
    let records = promised::records(&scene).await;
    for (topic, promised, written) in
        [(&scene.topic, &records, 2 * once + 1), (&scene.dlq, &letters, 2 * letters.len())]
    {
        let all = clients.kcat(topic).await;
        assert_eq!(all.len(), written, "the duplicates are there");
        for printed in clients.consume(topic, &all).await {
            assert_eq!(by_place(&printed), by_place(promised));
        }
    }
}

fn fullest(records: &[Printed]) -> &Printed {
    records.iter().max_by_key(|record| record.headers.len()).expect("a record")
}

fn names(record: &Printed) -> BTreeSet<String> {
    record.headers.keys().cloned().collect()
}

fn by_place(records: &[Printed]) -> BTreeMap<(i32, i64), &Printed> {
    let places: BTreeMap<_, _> =
        records.iter().map(|record| ((record.partition, record.offset), record)).collect();
    assert_eq!(places.len(), records.len(), "a record was handled twice");
    places
}

/// Numbers of a lane only rise, in the order in which the program got the records.
fn assert_in_order(records: &[Printed]) {
    let mut last = BTreeMap::new();
    for record in records {
        let number: i64 = record.headers["sequence_id"].parse().unwrap();
        let before = last.insert((&record.key, &record.headers["ce_type"]), number);
        assert!(before < Some(number), "{}: {number} came after {before:?}", record.key);
    }
}
