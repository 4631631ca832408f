//! What is true of every object: its owner, its comment, how a function is pinned, and PUBLIC.

use tokio_postgres::Client;

use crate::support::Database;

/// Functions that need neither rights nor a search_path of their own, with the reason. Nobody
/// is granted any of them: they run inside a definer function, with its rights and its search_path.
const PURE: [(&str, &str); 30] = [
    ("asked_outcomes", "turns arrays into rows"),
    ("bump_participant_outbox_seq", "runs inside enqueue for every row"),
    ("check_actor", "looks at its arguments and at the isolation level"),
    ("check_batch_size", "looks at its arguments"),
    ("check_delay_seconds", "looks at its arguments"),
    ("check_lease_seconds", "looks at its argument"),
    ("check_outcomes", "looks at its arguments"),
    ("check_policies_input", "looks at its argument"),
    ("check_worker", "looks at its argument and at the isolation level"),
    (
        "claim_is_plain",
        "looks at its arguments and at the isolation level; folded into its callers",
    ),
    ("clock", "asks PostgreSQL for the time; folded into its callers"),
    ("conflict_message", "makes a text"),
    ("enqueue_batch_fault", "looks at its argument"),
    ("enqueue_fault", "looks at its arguments"),
    ("enqueue_is_plain", "looks at its arguments; folded into its callers"),
    ("keep_commits", "keeps a setting of the transaction"),
    ("lane_rows", "folded into its callers, so that their LIMIT reaches the index"),
    ("notify_outbox_pending", "a trigger whose every name is qualified, fired for every row"),
    ("outbox_retry_delay", "arithmetic"),
    ("place_in_batch", "turns arrays into rows"),
    ("rail_policy_defaults", "completes a JSON object"),
    ("raise_first_fault", "raises an exception"),
    ("raise_refusal", "raises an exception"),
    ("remember_scan", "keeps a setting of the session"),
    ("repair_looked_lately", "reads a setting of the session; folded into its callers"),
    ("report_conflict", "raises an exception"),
    ("scan_start", "reads a setting of the session"),
    ("try_timestamptz", "casts a text"),
    ("uuidv7", "makes an id"),
    ("uuidv7_floor", "arithmetic"),
];

/// A constant has nothing that a search_path could change. Workers that sleep may read it.
const CONSTANT: &str = "wake_up_key";

/// Run with the rights of whoever writes the table, but pinned: that may be a superuser.
const TRIGGERS: [&str; 2] = ["refuse_change", "refuse_truncate"];

/// $1 are the pure functions, $2 the triggers.
const FUNCTION_FLAWS: &str = "
    SELECT proname || ' is not owned by symphony_control' FROM f WHERE proowner <> 'symphony_control'::regrole
    UNION ALL SELECT proname || ' has no comment' FROM f WHERE coalesce(obj_description(oid, 'pg_proc'), '') = ''
    UNION ALL SELECT proname || CASE WHEN prosecdef THEN ' is' ELSE ' is not' END || ' SECURITY DEFINER'
      FROM f WHERE prosecdef = (proname = ANY ($1::text[] || $2::text[]))
    UNION ALL SELECT proname || ' has the search_path ' || coalesce(path, 'of its caller')
      FROM f WHERE path IS DISTINCT FROM 'search_path=pg_catalog, pg_temp' AND (proname <> ALL ($1::text[]) OR path IS NOT NULL)
    UNION ALL SELECT proname || ' is executable by ' || CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END
      FROM f, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a
      WHERE grantee = 0 OR (proname = ANY ($1::text[] || $2::text[]) AND grantee <> proowner AND proname <> 'wake_up_key')
    UNION ALL SELECT e || ' does not exist' FROM unnest($1::text[] || $2::text[]) AS e WHERE e NOT IN (SELECT proname FROM f)";

const RELATION_FLAWS: &str = "
    SELECT c.oid::regclass || ' is not owned by symphony_control' FROM c WHERE relowner <> 'symphony_control'::regrole
    UNION ALL SELECT c.oid::regclass || ' has no comment' FROM c
      WHERE relkind IN ('r', 'p', 'v') AND NOT dated AND coalesce(obj_description(c.oid, 'pg_class'), '') = ''
    UNION ALL SELECT c.oid::regclass || ' is open to PUBLIC' FROM c, aclexplode(relacl) AS a WHERE grantee = 0
    UNION ALL SELECT nspname || ' is not owned by symphony_control' FROM n WHERE nspowner <> 'symphony_control'::regrole
    UNION ALL SELECT nspname || ' is open to PUBLIC' FROM n, aclexplode(nspacl) AS a WHERE grantee = 0";

async fn flaws(client: &Client) -> Vec<String> {
    let mut pure = PURE.map(|(name, _)| name).to_vec();
    pure.push(CONSTANT);
    let functions = format!(
        "WITH f AS (SELECT *, (SELECT s FROM unnest(proconfig) AS s WHERE s LIKE 'search_path=%') AS path
           FROM (SELECT oid, proname::text, proowner, prosecdef, proconfig, proacl FROM pg_proc
                 WHERE pronamespace = 'outbox'::regnamespace) AS p) {FUNCTION_FLAWS} ORDER BY 1"
    );
    let relations = format!(
        "WITH n AS (SELECT * FROM pg_namespace WHERE nspname IN ('outbox', 'outbox_archive')),
           c AS (SELECT *, relname ~ '_[0-9]{{8}}$' AS dated FROM pg_class
             WHERE relnamespace IN (SELECT oid FROM n) AND relkind IN ('r', 'p', 'v', 'm', 'S')) {RELATION_FLAWS} ORDER BY 1"
    );
    let mut rows = client.query(&functions, &[&pure, &&TRIGGERS[..]]).await.unwrap();
    rows.extend(client.query(&relations, &[]).await.unwrap());
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn every_object_is_owned_commented_and_closed_and_every_function_is_pinned() {
    let database = Database::new().await;
    assert_eq!(flaws(&database.connect().await).await, [""; 0]);
}

#[tokio::test]
async fn each_flaw_is_noticed() {
    let database = Database::new().await;
    let client = database.connect().await;
    let spoil = "ALTER FUNCTION outbox.run_outbox_upkeep() OWNER TO CURRENT_USER;
        ALTER FUNCTION outbox.run_outbox_upkeep() SECURITY INVOKER;
        ALTER FUNCTION outbox.run_outbox_upkeep() SET search_path = public;
        COMMENT ON FUNCTION outbox.run_outbox_upkeep() IS NULL;
        GRANT EXECUTE ON FUNCTION outbox.clock() TO PUBLIC, symphony_ingest;
        ALTER FUNCTION outbox.clock() SECURITY DEFINER;
        ALTER FUNCTION outbox.refuse_change() RESET search_path;
        COMMENT ON VIEW outbox.supervisor_outbox_status IS '';
        GRANT SELECT ON outbox.payment_outbox_keys TO PUBLIC;
        GRANT USAGE ON SCHEMA outbox_archive TO PUBLIC";
    let before = flaws(&client).await;
    client.batch_execute(spoil).await.unwrap();
    let noticed = [
        "clock is SECURITY DEFINER",
        "clock is executable by PUBLIC",
        "clock is executable by symphony_ingest",
        "refuse_change has the search_path of its caller",
        "run_outbox_upkeep has no comment",
        "run_outbox_upkeep has the search_path search_path=public",
        "run_outbox_upkeep is not SECURITY DEFINER",
        "run_outbox_upkeep is not owned by symphony_control",
        "outbox.payment_outbox_keys is open to PUBLIC",
        "outbox.supervisor_outbox_status has no comment",
        "outbox_archive is open to PUBLIC",
    ];
    let mut after = flaws(&client).await;
    after.retain(|flaw| !before.contains(flaw));
    assert_eq!(after, noticed);
}

#[tokio::test]
async fn a_function_that_is_made_later_is_closed_too() {
    let database = Database::new().await;
    let client = database.connect().await;
    let make = "SET ROLE symphony_control; \
        CREATE FUNCTION outbox.later() RETURNS int LANGUAGE sql AS 'SELECT 1'; RESET ROLE";
    client.batch_execute(make).await.unwrap();
    let open = "SELECT has_function_privilege('symphony_ingest', 'outbox.later()', 'EXECUTE')";
    assert!(!client.query_one(open, &[]).await.unwrap().get::<_, bool>(0));
}

/// How the control role could be used by somebody other than a running migration.
async fn ways_into_control(client: &Client) -> Vec<String> {
    // Whoever may grant the role to itself (ADMIN alone, since 16) has to do so first.
    const WAYS: &str = "SELECT 'can log in' FROM pg_roles WHERE rolname = 'symphony_control' AND rolcanlogin
        UNION ALL SELECT 'is powerful' FROM pg_roles WHERE rolname = 'symphony_control'
          AND (rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls)
        UNION ALL SELECT 'has the member ' || member::regrole FROM pg_auth_members AS m
          WHERE roleid = 'symphony_control'::regrole
            AND (coalesce((to_jsonb(m) ->> 'set_option')::boolean, true) OR coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, true))";
    client.query(WAYS, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn nobody_can_become_the_control_role() {
    let database = Database::new().await;
    let client = database.connect().await;
    assert_eq!(ways_into_control(&client).await, [""; 0]);
    // Roles are the cluster's: what shows that the look can fail is never committed.
    let tamper = "BEGIN; ALTER ROLE symphony_control LOGIN CREATEDB; \
        GRANT symphony_control TO symphony_auditor";
    client.batch_execute(tamper).await.unwrap();
    let ways = ways_into_control(&client).await;
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(ways, ["can log in", "is powerful", "has the member symphony_auditor"]);
}
