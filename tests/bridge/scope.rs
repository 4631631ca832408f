//! A bridge that delivers the rows of one rail, or of one tenant, and leaves the others to others.

use tokio_postgres::Client;

use crate::process::Setup;
use crate::rows::{all_done, wait_for};
use crate::support::{Database, Topic};

const OURS: &str = "aaaaaaaa-0000-4000-8000-000000000000";
const THEIRS: &str = "bbbbbbbb-0000-4000-8000-000000000000";
const OWN_IS_DONE: &str =
    "SELECT NOT EXISTS (SELECT FROM outbox.payment_outbox_pending WHERE participant_id = 'own')";
/// Nobody has ever had a lease on any of them.
const UNTOUCHED: &str = "SELECT count(*) FROM outbox.payment_outbox_pending AS p WHERE participant_id LIKE 'other%' \
    AND NOT EXISTS (SELECT FROM outbox.payment_outbox_events AS e WHERE e.event_type = 'LEASE_CLAIMED' AND p.outbox_id = ANY (e.outbox_ids))";

async fn enqueue(client: &Client, participant: &str, rail: &str, tenant: Option<&str>) {
    const CALL: &str = "SELECT count((outbox.enqueue_payment_outbox(gen_random_uuid()::text, $1, 'k', $2, '{}', \
        NULL, $3::text::uuid)).outbox_id) FROM generate_series(1, 10)";
    client.query_one(CALL, &[&participant, &rail, &tenant]).await.unwrap();
}

/// Rails on one topic.
async fn setup(database: &Database, topic: &Topic) -> Setup {
    Setup::kafka(database, topic).await.and(&format!(
        "[rails.other]\nkind = \"kafka\"\ntopic = \"{}\"\nschema = \"any\"\n",
        topic.name()
    ))
}

/// With this option `trestle run` and `trestle drain` deliver what `own` enqueues, and nothing of what is there.
async fn others_stay(
    database: &Database,
    setup: &Setup,
    option: [&str; 2],
    own: impl AsyncFn(&Client),
) {
    let client = database.connect().await;
    let untouched = async || client.query_one(UNTOUCHED, &[]).await.unwrap().get::<_, i64>(0);
    let others = untouched().await;
    assert!(others > 0);
    for command in ["run", "drain"] {
        own(&client).await;
        let mut worker = setup.start(&[command, option[0], option[1]]);
        if command == "run" {
            // By the second time it has looked at everything that it looks at.
            wait_for(database, OWN_IS_DONE).await;
            own(&client).await;
            wait_for(database, OWN_IS_DONE).await;
            worker.signal("TERM");
        }
        assert!(worker.ended().await.success(), "{}", worker.log());
        wait_for(database, OWN_IS_DONE).await;
        assert_eq!(untouched().await, others, "{command}: {}", worker.log());
    }
    let _whoever_takes_all = setup.run();
    all_done(database).await;
}

#[tokio::test]
async fn the_rows_of_rails_that_were_not_asked_for_stay() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let setup = setup(&database, &topic).await;
    enqueue(&database.connect().await, "other", "other", None).await;
    let own = async |client: &Client| enqueue(client, "own", "kafka", None).await;
    others_stay(&database, &setup, ["--rail", "kafka"], own).await;
}

#[tokio::test]
async fn the_rows_of_other_tenants_and_of_none_stay() {
    let (database, topic) = (Database::new().await, Topic::new().await);
    let (setup, client) = (setup(&database, &topic).await, database.connect().await);
    for (participant, tenant) in [("other", Some(THEIRS)), ("other of none", None)] {
        enqueue(&client, participant, "kafka", tenant).await;
    }
    let own = async |client: &Client| enqueue(client, "own", "kafka", Some(OURS)).await;
    others_stay(&database, &setup, ["--tenant", OURS], own).await;
}
