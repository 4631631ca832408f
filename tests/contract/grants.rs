//! Who may do what: exactly the lists below, and nothing is left to PUBLIC.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use crate::support::{Database, User};

const GROUPS: [&str; 5] = [
    "symphony_ingest",
    "symphony_executor",
    "symphony_operator",
    "symphony_readonly",
    "symphony_auditor",
];

/// Who may read what. Nobody has any other right on a table, a view or a sequence.
const MAY_READ: [(&str, &[&str]); 23] = [
    ("supervisor_outbox_status", &["executor", "operator", "readonly", "auditor"]),
    ("outbox_operational_status", &["executor", "operator", "readonly", "auditor"]),
    ("outbox_failure_status", &["operator", "readonly", "auditor"]),
    ("outbox_worker_status", &["operator", "readonly", "auditor"]),
    ("payment_outbox_pending", &["operator", "readonly", "auditor"]),
    ("payment_outbox_attempts", &["operator", "readonly", "auditor"]),
    ("payment_outbox_events", &["operator", "readonly", "auditor"]),
    ("participant_outbox_sequences", &["operator"]),
    ("payment_outbox_attempts_default", &["operator"]),
    ("payment_outbox_events_default", &["operator"]),
    ("payment_outbox_failures", &["operator"]),
    ("payment_outbox_gauges", &["operator"]),
    ("payment_outbox_horizon", &["operator"]),
    ("payment_outbox_keys", &["operator"]),
    ("payment_outbox_lanes", &["operator"]),
    ("payment_outbox_partitions", &["operator"]),
    ("payment_outbox_rail_policies", &["operator"]),
    ("payment_outbox_settings", &["operator"]),
    ("payment_outbox_shards", &["operator"]),
    ("payment_outbox_turns", &["operator"]),
    ("payment_outbox_workers", &["operator"]),
    ("contact_identities", &["operator"]),
    ("schema_code", &["operator"]),
];

/// What the migrations' own bookkeeping, made outside of these files, adds to the list.
const HISTORY: (&str, &[&str]) = ("schema_history", &["operator"]);

const MAY_CALL: [(&str, &str); 47] = [
    ("enqueue_payment_outbox", "ingest"),
    ("enqueue_payment_outbox_batch", "ingest"),
    ("put_contact_identity", "ingest"),
    ("claim_outbox_batch", "executor"),
    ("complete_outbox_attempt", "executor"),
    ("complete_outbox_batch", "executor"),
    ("renew_outbox_leases", "executor"),
    ("release_outbox_leases", "executor"),
    ("repair_expired_leases", "executor"),
    ("run_outbox_upkeep", "executor"),
    ("sample_outbox_gauges", "executor"),
    ("waiting_rails", "executor"),
    ("wake_up_key", "executor"),
    ("take_wake_up_key", "executor"),
    ("check_rail_policies", "executor"),
    ("note_worker", "executor"),
    ("forget_worker", "executor"),
    ("lease_outbox_shards", "executor"),
    ("outbox_shard_stand", "executor"),
    ("outbox_shards_left", "executor"),
    ("note_shard_offsets", "executor"),
    ("renew_shard_offsets", "executor"),
    ("reconcile_outbox_shard", "executor"),
    ("release_outbox_shard", "executor"),
    ("halt_outbox_shard", "executor"),
    ("resume_outbox_shard", "operator"),
    ("pause_outbox_lane", "operator"),
    ("resume_outbox_lane", "operator"),
    ("skip_outbox_lane_head", "operator"),
    ("replay_failed_outbox", "operator"),
    ("dismiss_failed_outbox", "operator"),
    ("set_rail_policies", "operator"),
    ("set_outbox_settings", "operator"),
    ("preview_replay", "operator"),
    ("outbox_schema_version", "executor"),
    ("outbox_schema_version", "operator"),
    ("outbox_schema_version", "readonly"),
    ("outbox_schema_version", "auditor"),
    ("outbox_gauges", "operator"),
    ("outbox_gauges", "readonly"),
    ("outbox_gauges", "auditor"),
    ("lane_status", "operator"),
    ("lane_status", "readonly"),
    ("lane_status", "auditor"),
    ("trace_outbox", "operator"),
    ("trace_outbox", "readonly"),
    ("trace_outbox", "auditor"),
];

/// Dated partitions come and go: they are read through their parent.
const IS_DATED: &str = "c.relname ~ '^payment_outbox_(attempts|events)_[0-9]{8}$'";

/// Every right that a role has by itself, through a group or through PUBLIC.
async fn rights(client: &Client, roles: &[&str]) -> BTreeSet<String> {
    let query = format!(
        "WITH role AS (SELECT unnest($1::text[]) AS name),
        relation AS (SELECT c.oid, c.relname::text, c.relkind, {IS_DATED} AS dated FROM pg_class AS c
          WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')),
        kind AS (SELECT unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']
          || CASE WHEN current_setting('server_version_num')::int >= 170000 THEN ARRAY['MAINTAIN'] END) AS name)
        SELECT concat_ws(' ', role.name, kind.name, CASE WHEN dated THEN 'dated partition' ELSE relname END)
        FROM role, relation, kind WHERE relkind <> 'S' AND has_table_privilege(role.name, relation.oid, kind.name)
        UNION
        SELECT concat_ws(' ', role.name, kind.name, 'columns of', relname) FROM role, relation, kind
        WHERE relkind <> 'S' AND kind.name IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES')
          AND NOT has_table_privilege(role.name, relation.oid, kind.name)
          AND has_any_column_privilege(role.name, relation.oid, kind.name)
        UNION
        SELECT concat_ws(' ', role.name, kind.name, relname) FROM role, relation,
          unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS kind (name)
        WHERE relkind = 'S' AND has_sequence_privilege(role.name, relation.oid, kind.name)
        UNION
        SELECT concat_ws(' ', role.name, 'EXECUTE', p.proname) FROM role, pg_proc AS p
        WHERE p.pronamespace = 'outbox'::regnamespace AND has_function_privilege(role.name, p.oid, 'EXECUTE')
        UNION
        SELECT concat_ws(' ', role.name, 'USAGE', t.typname) FROM role, pg_type AS t
        WHERE t.typnamespace = 'outbox'::regnamespace AND t.typtype = 'e' AND has_type_privilege(role.name, t.oid, 'USAGE')
        UNION
        SELECT concat_ws(' ', role.name, kind.name, n.nspname) FROM role, pg_namespace AS n,
          unnest(ARRAY['USAGE', 'CREATE']) AS kind (name)
        WHERE n.nspname LIKE 'outbox%' AND has_schema_privilege(role.name, n.oid, kind.name)"
    );
    let rows = client.query(&query, &[&roles]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn allowed() -> BTreeSet<String> {
    let mut allowed = BTreeSet::from(["symphony_operator SELECT dated partition".to_owned()]);
    for (relation, readers) in MAY_READ.iter().chain([&HISTORY]) {
        allowed.extend(readers.iter().map(|reader| format!("symphony_{reader} SELECT {relation}")));
    }
    allowed.extend(MAY_CALL.map(|(function, role)| format!("symphony_{role} EXECUTE {function}")));
    for role in ["executor", "operator", "readonly", "auditor"] {
        allowed.insert(format!("symphony_{role} USAGE outbox_attempt_state"));
    }
    for role in ["operator", "readonly", "auditor"] {
        allowed.insert(format!("symphony_{role} USAGE outbox_archive"));
    }
    allowed.extend(GROUPS.map(|role| format!("{role} USAGE outbox")));
    allowed
}

/// What the roles may do beyond the lists, and what the lists promise in vain.
async fn differences(client: &Client, stranger: &str) -> Vec<String> {
    let mut roles = GROUPS.to_vec();
    roles.push(stranger);
    let (rights, allowed) = (rights(client, &roles).await, allowed());
    let too_much = rights.difference(&allowed).map(|right| format!("+ {right}"));
    too_much.chain(allowed.difference(&rights).map(|right| format!("- {right}"))).collect()
}

#[tokio::test]
async fn each_role_has_exactly_the_rights_of_the_lists() {
    let stranger = User::new().await;
    let database = Database::new().await;
    let client = database.connect().await;
    assert_eq!(differences(&client, &stranger.name).await, [""; 0]);
}

#[tokio::test]
async fn a_right_too_many_or_too_few_is_noticed() {
    let stranger = User::new().await;
    let database = Database::new().await;
    let client = database.connect().await;
    let tamper = "GRANT UPDATE (payload) ON outbox.payment_outbox_pending TO symphony_readonly;
        GRANT USAGE ON SEQUENCE outbox.payment_outbox_turns_turn_id_seq TO symphony_ingest;
        GRANT EXECUTE ON FUNCTION outbox.bump_participant_outbox_seq(text, uuid, integer) TO symphony_ingest;
        GRANT TRUNCATE ON outbox.payment_outbox_turns TO symphony_auditor;
        REVOKE SELECT ON outbox.payment_outbox_events FROM symphony_auditor";
    client.batch_execute(tamper).await.unwrap();
    let noticed = [
        "+ symphony_auditor TRUNCATE payment_outbox_turns",
        "+ symphony_ingest EXECUTE bump_participant_outbox_seq",
        "+ symphony_ingest USAGE payment_outbox_turns_turn_id_seq",
        "+ symphony_readonly UPDATE columns of payment_outbox_pending",
        "- symphony_auditor SELECT payment_outbox_events",
    ];
    assert_eq!(differences(&client, &stranger.name).await, noticed);
}

#[tokio::test]
async fn a_right_of_public_is_noticed_as_everybodys() {
    let stranger = User::new().await;
    let database = Database::new().await;
    let client = database.connect().await;
    client.batch_execute("GRANT EXECUTE ON FUNCTION outbox.clock() TO PUBLIC").await.unwrap();
    let differences = differences(&client, &stranger.name).await;
    assert_eq!(differences.len(), 6, "{differences:?}");
    assert!(differences.contains(&format!("+ {} EXECUTE clock", stranger.name)), "{differences:?}");
}
