//! A user who may create objects elsewhere cannot make a definer function run them.

use tokio_postgres::Client;
use uuid::Uuid;

use crate::calls::{Claimed, claim, complete, enqueue};
use crate::support::{Database, User};

/// Everything that the user has made comes before what PostgreSQL has.
const TRAPPED: &str = "SET search_path = pg_temp, public, pg_catalog";

/// What the calls below are about: rows in the states that make them go through.
struct Scene {
    held: Vec<Claimed>,
    failed: Vec<Uuid>,
}

/// A user with all three groups that may call something, and the right to create objects.
async fn set_traps(database: &Database, user: &User) -> Client {
    let superuser = database.connect().await;
    let grant = format!(
        "GRANT symphony_ingest, symphony_executor, symphony_operator TO {0}; GRANT CREATE ON SCHEMA public TO {0}",
        user.name
    );
    superuser.batch_execute(&grant).await.unwrap();
    let config: tokio_postgres::Config = user.url(database).parse().unwrap();
    let (client, connection) = config.connect(tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(include_str!("traps.sql")).await.unwrap();
    client
}

/// Made before the traps can be sprung by the test's own queries.
async fn scene(database: &Database) -> Scene {
    let client = database.connect().await;
    let mut failed = Vec::new();
    for participant in ["dismissed", "replayed"] {
        failed.push(enqueue(&client, participant, "ach").await.outbox_id);
    }
    for row in claim(&client, "worker", 10).await {
        complete(&client, "worker", &row, "FAILED").await.unwrap();
    }
    for row in claim(&client, "worker", 10).await {
        complete(&client, "worker", &row, "DISPATCHED").await.unwrap();
    }
    for participant in ["a", "b", "c", "d", "e"] {
        enqueue(&client, participant, "ach").await;
    }
    let held = claim(&client, "worker", 10).await;
    let shards = "SELECT outbox.set_rail_policies('{\"eos\": {\"delivery\": \"exactly_once\"}}', 'ops', 'why'); \
        SELECT outbox.note_worker('worker', '{eos}'); SELECT outbox.lease_outbox_shards('worker', 'eos', 60); \
        SELECT outbox.halt_outbox_shard('worker', 'eos', 3::smallint, 1, 'why')";
    client.batch_execute(shards).await.unwrap();
    for participant in ["claimed", "paused", "skipped"] {
        enqueue(&client, participant, "ach").await;
    }
    Scene { held, failed }
}

/// A call for each function that somebody is granted, by name.
fn calls(scene: &Scene) -> Vec<(&'static str, String)> {
    let row = |n: usize| (scene.held[n].outbox_id, scene.held[n].lease_token);
    let one = |n: usize| format!("'{}', '{}'", row(n).0, row(n).1);
    let many = |n: usize| format!("'worker', '{{{}}}', '{{{}}}'", row(n).0, row(n).1);
    let (dismissed, replayed) = (scene.failed[0], scene.failed[1]);
    vec![
        ("enqueue_payment_outbox", "'i', 'p', 'k', 'ach', '{\"a\": 1}', '{\"h\": \"1\"}', NULL, '2020-01-01'".to_owned()),
        (
            "enqueue_payment_outbox_batch",
            "'[{\"instruction_id\": \"b\", \"participant_id\": \"p\", \"idempotency_key\": \"k\", \
              \"rail_type\": \"ach\", \"payload\": {}, \"not_before\": \"2020-01-01\"}, {\"bad\": 1}]', true"
                .to_owned(),
        ),
        ("put_contact_identity", "'p', 'email', 'p@example.com'".to_owned()),
        ("renew_outbox_leases", format!("{}, 30", many(0))),
        ("complete_outbox_attempt", format!("{}, 'worker', 'DISPATCHED'", one(0))),
        ("complete_outbox_batch", format!("{}, '{{RETRYABLE}}'", many(1))),
        ("release_outbox_leases", many(2)),
        ("repair_expired_leases", "10, 'worker'".to_owned()),
        ("run_outbox_upkeep", String::new()),
        ("outbox_gauges", String::new()),
        ("outbox_schema_version", String::new()),
        ("sample_outbox_gauges", String::new()),
        ("waiting_rails", "'{kafka}'".to_owned()),
        ("wake_up_key", String::new()),
        ("take_wake_up_key", String::new()),
        ("check_rail_policies", "'{\"ach\": {\"on_failed\": \"skip\"}}'".to_owned()),
        ("note_worker", "'worker', '{ach}'".to_owned()),
        ("forget_worker", "'worker'".to_owned()),
        ("lease_outbox_shards", "'worker', 'eos', 60".to_owned()),
        ("outbox_shards_left", "'worker', 'eos'".to_owned()),
        ("outbox_shard_stand", "'worker', 'eos', 0::smallint, 1".to_owned()),
        ("note_shard_offsets", "'worker', 'eos', 0::smallint, 1, '{}'".to_owned()),
        ("renew_shard_offsets", "'worker', 'eos', 0::smallint, 1, 0, '{}'".to_owned()),
        (
            "reconcile_outbox_shard",
            "'worker', 'eos', 0::smallint, 1, 0, '{}', '{}', '{}', '{}', '{}', '{}', NULL, '{}', 'me'"
                .to_owned(),
        ),
        ("release_outbox_shard", "'worker', 'eos', 1::smallint, 1".to_owned()),
        ("halt_outbox_shard", "'worker', 'eos', 2::smallint, 1, 'why'".to_owned()),
        ("resume_outbox_shard", "'eos', 3::smallint, 'ops', 'why'".to_owned()),
        ("pause_outbox_lane", "'paused', 'ach', 'ops', 'why'".to_owned()),
        ("resume_outbox_lane", "'paused', 'ach', 'ops', 'why'".to_owned()),
        ("skip_outbox_lane_head", "'skipped', 'ach', 'ops', 'why'".to_owned()),
        ("preview_replay", format!("'{{{replayed}}}'")),
        ("replay_failed_outbox", format!("'{replayed}', 'ops', 'why'")),
        ("dismiss_failed_outbox", format!("'{dismissed}', 'ops', 'why'")),
        ("set_rail_policies", "'{\"ach\": {\"on_failed\": \"halt\"}, \"eos\": {\"delivery\": \"exactly_once\"}}', 'ops', 'why'".to_owned()),
        ("set_outbox_settings", "'{\"hot_days\": 8}', 'ops', 'why'".to_owned()),
        ("lane_status", "NULL, 'ach', true, 10".to_owned()),
        ("trace_outbox", format!("'outbox', '{replayed}', 10")),
        ("claim_outbox_batch", "10, 'worker', 60".to_owned()),
    ]
}

/// How each call ends: "done", or the message with which it failed.
async fn outcomes(client: &Client, scene: &Scene) -> Vec<(&'static str, String)> {
    client.batch_execute(TRAPPED).await.unwrap();
    let mut outcomes = Vec::new();
    for (function, arguments) in calls(scene) {
        let call = format!("SELECT FROM outbox.{function}({arguments})");
        let told = match client.batch_execute(&call).await {
            Ok(()) => "done".to_owned(),
            Err(error) => error.as_db_error().expect("the server refused it").message().to_owned(),
        };
        outcomes.push((function, told));
    }
    outcomes
}

#[tokio::test]
async fn no_granted_function_runs_what_its_caller_has_made() {
    let user = User::new().await;
    let database = Database::new().await;
    let scene = scene(&database).await;
    let client = set_traps(&database, &user).await;
    for (function, told) in outcomes(&client, &scene).await {
        assert_eq!(told, "done", "{function}");
    }
}

#[tokio::test]
async fn without_a_pinned_search_path_every_one_of_them_would() {
    let user = User::new().await;
    let database = Database::new().await;
    let scene = scene(&database).await;
    let unpin = "DO $$ DECLARE f regprocedure; BEGIN \
        FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'outbox'::regnamespace AND proconfig IS NOT NULL \
        LOOP EXECUTE format('ALTER FUNCTION %s RESET ALL', f); END LOOP; END $$";
    database.connect().await.batch_execute(unpin).await.unwrap();
    let client = set_traps(&database, &user).await;
    // A constant calls nothing.
    let told = outcomes(&client, &scene).await;
    for (function, told) in told.into_iter().filter(|(function, _)| *function != "wake_up_key") {
        let sprung = told.starts_with("trap ") && told.ends_with("sprung by symphony_control");
        // Where the trap called count is found first, count(*) does not even parse.
        let found = told == "count(*) specified, but count is not an aggregate function";
        assert!(sprung || found, "{function}: {told}");
    }
}

#[tokio::test]
async fn every_granted_function_is_called() {
    const GRANTED: &str = "SELECT DISTINCT p.proname::text FROM pg_proc AS p, aclexplode(p.proacl) AS a \
        WHERE p.pronamespace = 'outbox'::regnamespace AND a.grantee <> p.proowner ORDER BY 1";
    let database = Database::new().await;
    let rows = database.connect().await.query(GRANTED, &[]).await.unwrap();
    let granted: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut called: Vec<_> =
        calls(&scene(&database).await).into_iter().map(|call| call.0).collect();
    called.sort_unstable();
    assert_eq!(called, granted);
}
