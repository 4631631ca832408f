//! `trestle doctor` on the database.

use std::process::{Command, Stdio};

use crate::doctor_scene::Patient;
use crate::scene::run;
use crate::support::{Database, LentPostgres, Pooler, Topic, User, trestle};

#[tokio::test]
async fn a_bridge_in_good_health_has_no_failure() {
    let database = Database::new().await;
    let (topic, dead) = (Topic::with_partitions(3).await, Topic::new().await);
    let patient = Patient::bridge(&database, &topic, &dead).await;
    let findings = patient.examined(0);
    assert_eq!(findings.failed(), Vec::<&str>::new());
    findings.each_wrong_has_its_remedy();
    for check in [
        "database",
        "database version",
        "database writable",
        "database clock",
        "database listen",
        "rights enough",
        "rights not too many",
        "outbox version",
        "outbox partitions",
        "outbox policies",
        "rails.kafka brokers",
        "rails.kafka rights",
        "admin.listen",
    ] {
        assert_eq!(findings.verdict(check), "ok", "{check}: {}", findings.all(check));
    }
    let shown = patient.shown(0);
    assert!(shown.contains("0 failed"), "{shown}");
}

#[tokio::test]
async fn commands_need_no_more_than_to_read() {
    let database = Database::new().await;
    for role in ["symphony_readonly", "symphony_operator"] {
        let findings = Patient::new(&database.url_as(role).await).examined(0);
        assert_eq!(findings.verdict("rights enough"), "ok");
        assert_eq!(findings.verdict("rails"), "warn");
    }
}

#[tokio::test]
async fn a_user_without_rights_is_given_them_by_the_line_that_is_shown() {
    let user = User::new().await;
    let database = Database::new().await;
    let (topic, dead) = (Topic::new().await, Topic::new().await);
    let patient = Patient::bridge(&database, &topic, &dead).await.at(&user.url(&database));
    let findings = patient.examined(1);
    assert_eq!(findings.failed(), ["rights enough"]);
    assert!(
        findings.found("rights enough").contains("may not call check_rail_policies, claim_outbox")
    );
    database.connect().await.batch_execute(findings.mend("rights enough")).await.unwrap();
    assert_eq!(patient.examined(0).verdict("rights enough"), "ok");
}

#[tokio::test]
async fn rights_too_many_are_taken_away_by_the_lines_that_are_shown() {
    let user = User::new().await;
    let database = Database::new().await;
    let admin = database.connect().await;
    let patient = Patient::new(&user.url(&database));
    let name = &user.name;
    admin.batch_execute(&format!("GRANT symphony_readonly TO {name}")).await.unwrap();
    for (give, told) in [
        (format!("ALTER ROLE {name} CREATEROLE"), "may create roles"),
        (format!("ALTER ROLE {name} BYPASSRLS"), "row security"),
        (
            format!("GRANT INSERT ON outbox.payment_outbox_pending TO {name}"),
            "may write to outbox.payment_outbox_pending",
        ),
        (
            "GRANT EXECUTE ON FUNCTION outbox.bury_failed(uuid[], text) TO PUBLIC".to_owned(),
            "everybody may call bury_failed",
        ),
    ] {
        admin.batch_execute(&give).await.unwrap();
        let findings = patient.examined(1);
        assert_eq!(findings.failed(), ["rights not too many"], "{give}");
        assert!(findings.found("rights not too many").contains(told), "{give}");
        admin.batch_execute(findings.mend("rights not too many")).await.unwrap();
        assert_eq!(patient.examined(0).verdict("rights not too many"), "ok", "{give}");
    }
    let findings = Patient::new(&database.url()).examined(1);
    assert!(findings.found("rights not too many").contains("is a superuser"));
}

#[tokio::test]
async fn an_outbox_that_is_missing_older_or_newer_is_told() {
    let empty = Database::empty().await;
    let findings = Patient::new(&empty.url()).examined(1);
    assert_eq!(findings.verdict("outbox version"), "fail");
    assert!(findings.mend("outbox version").starts_with("trestle migrate"));
    let database = Database::new().await;
    let client = database.connect().await;
    let patient = Patient::new(&database.url_as("symphony_operator").await);
    assert_eq!(patient.examined(0).verdict("outbox version"), "ok");
    for (version, mend) in [("0.0.1", "trestle migrate"), ("99.1.2", "use trestle 99.1.2")] {
        let change = "UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = $1";
        client.execute(change, &[&version]).await.unwrap();
        let findings = patient.examined(1);
        assert_eq!(findings.failed(), ["outbox version"]);
        assert!(findings.mend("outbox version").starts_with(mend));
    }
}

#[tokio::test]
async fn a_bridge_is_told_the_version_of_its_outbox_and_works_with_a_newer_one() {
    let database = Database::new().await;
    let client = database.connect().await;
    let patient = Patient::new(&database.url_as("symphony_executor").await);
    assert_eq!(
        patient.examined(0).found("outbox version"),
        concat!("that of trestle ", env!("CARGO_PKG_VERSION"))
    );
    let made_by = async |version: &str| {
        let change = "UPDATE outbox.schema_code SET fingerprint = 'x', trestle_version = $1";
        client.execute(change, &[&version]).await.unwrap();
    };
    made_by("99.1.2").await;
    let findings = patient.examined(0);
    assert_eq!(findings.verdict("outbox version"), "warn");
    assert!(findings.found("outbox version").contains("that of trestle 99.1.2 (migration "));
    assert_eq!(findings.mend("outbox version"), "use trestle 99.1.2 or newer");
    made_by("0.0.1").await;
    let findings = patient.examined(1);
    assert_eq!(findings.failed(), ["outbox version"]);
    assert!(findings.found("outbox version").contains("that of trestle 0.0.1 (migration "));
    assert!(findings.mend("outbox version").starts_with("trestle migrate"));
    client.batch_execute("DROP FUNCTION outbox.outbox_schema_version()").await.unwrap();
    assert_eq!(patient.examined(1).found("outbox version"), "too old to tell its version");
}

/// The doctor's questions find a clock that goes an hour ahead.
async fn put_an_hour_ahead(database: &Database) {
    let later = format!(
        "CREATE SCHEMA later; GRANT USAGE ON SCHEMA later TO PUBLIC; \
         CREATE FUNCTION later.clock_timestamp() RETURNS timestamptz \
           RETURN pg_catalog.clock_timestamp() + interval '1 hour'; \
         ALTER DATABASE {} SET search_path = later, pg_catalog",
        database.name()
    );
    database.connect().await.batch_execute(&later).await.unwrap();
}

#[tokio::test]
async fn transactions_that_are_left_open_are_ended_by_the_lines_that_are_shown() {
    const CHECK: &str = "database transactions";
    let database = Database::new().await;
    put_an_hour_ahead(&database).await;
    let admin = database.connect().await;
    let patient = Patient::new(&database.url_as("symphony_executor").await);
    // Its own connection is not an old one, and what it may not see it does not deny.
    let stranger = database.connect().await;
    stranger.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    let findings = patient.examined(1);
    assert_eq!(findings.failed(), ["database clock"]);
    assert!(findings.found(CHECK).contains("none that this user may see"));
    let of_all = Patient::new(&database.url()).examined(1);
    assert!(of_all.found(CHECK).starts_with("transaction of "), "{}", of_all.found(CHECK));

    let gid = format!("forgotten-{}", database.name());
    let prepare = format!("BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION '{gid}'");
    admin.batch_execute(&prepare).await.unwrap();
    let own = database.connect_as("symphony_executor").await;
    own.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    for told in [
        format!("prepared transaction '{gid}' has been open for 60 min"),
        "transaction of test_login_symphony_executor (process ".to_owned(),
    ] {
        let findings = patient.examined(1);
        assert_eq!(findings.verdict(CHECK), "warn");
        assert!(findings.found(CHECK).starts_with(&told), "{}", findings.found(CHECK));
        admin.batch_execute(findings.mend(CHECK)).await.unwrap();
    }
    assert_eq!(patient.examined(1).verdict(CHECK), "ok");
}

#[tokio::test]
async fn policies_that_are_not_in_force_are_told_with_both_values() {
    let database = Database::new().await;
    let (topic, dead) = (Topic::new().await, Topic::new().await);
    let patient = Patient::bridge(&database, &topic, &dead).await.and("on_failed = \"halt\"\n");
    let findings = patient.examined(1);
    assert_eq!(findings.failed(), ["outbox policies"]);
    assert!(findings.found("outbox policies").contains("'halt' in this configuration"));
    let operator = patient.at(&database.url_as("symphony_operator").await);
    let findings = operator.examined(1);
    let expected = "rails.kafka.on_failed is halt here, but skip is in force";
    assert_eq!(findings.found("outbox policies"), expected);
}

#[tokio::test]
async fn rows_in_a_default_partition_are_told() {
    let database = Database::new().await;
    let stray = "INSERT INTO outbox.payment_outbox_attempts (attempt_id, outbox_id, instruction_id, participant_id, sequence_id, \
        idempotency_key, rail_type, payload, headers, attempt_no, state, claimed_at, completed_at, created_at, worker_id, lease_token) \
        VALUES (gen_random_uuid(), 'ffffffff-0000-7000-8000-000000000000', 'i', 'p', 1, 'k', 'kafka', '{}', '{}', 1, 'RETRYABLE', \
        now(), now(), now(), 'w', gen_random_uuid())";
    database.connect().await.batch_execute(stray).await.unwrap();
    let findings = Patient::new(&database.url_as("symphony_readonly").await).examined(1);
    assert_eq!(findings.failed(), ["outbox partitions"]);
    assert!(findings.found("outbox partitions").contains("payment_outbox_attempts_default"));
    let section = "docs/runbook.md#trestledefaultpartitionnotempty";
    assert!(findings.mend("outbox partitions").contains(section));
}

#[tokio::test]
async fn a_pooler_is_found_out_by_what_does_not_come_through_it() {
    let database = Database::new().await;
    let direct = database.url_as("symphony_executor").await;
    let pooler = Pooler::in_front_of(&direct).await;
    let pooled = || Patient::new(&pooler.instead_in(&direct));
    let findings = pooled().examined(1);
    assert_eq!(findings.failed(), ["database listen"]);
    assert!(findings.found("database listen").contains("through a transaction pooler"));
    let listens = pooled().and(&format!("[database]\nlisten_url = \"{direct}\"\n"));
    assert_eq!(listens.examined(0).verdict("database listen"), "ok");
    let polls = pooled().and("[relay]\nlisten = false\n");
    assert_eq!(polls.examined(0).verdict("database listen"), "ok");
}

#[tokio::test]
async fn a_server_that_is_not_believed_or_not_reached_is_told_with_what_to_correct() {
    let server = LentPostgres::secured().await;
    let verified = server.url(&format!("sslmode=verify-full&{}", server.root()));
    let findings = Patient::new(&verified).examined(1);
    assert_eq!(findings.verdict("database tls"), "ok");
    assert!(findings.found("database tls").contains("certificate verified (sslmode=verify-full)"));
    let foreign = format!("sslmode=verify-full&sslrootcert={}", server.file("foreign-ca.pem"));
    let findings = Patient::new(&server.url(&foreign)).examined(1);
    assert_eq!(findings.failed(), ["database"]);
    assert!(findings.mend("database").contains("sslrootcert"));
    let wrong = server.url("").replace("trestle:trestle", "trestle:hunter2");
    assert!(Patient::new(&wrong).examined(1).mend("database").contains("password"));
    let nowhere = Patient::new("postgres://u:hunter2@127.0.0.1:1/d").examined(1);
    assert!(nowhere.mend("database").contains("host and port"));
}

#[tokio::test]
async fn an_address_that_is_taken_is_told_and_no_failure() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let database = Database::new().await;
    let mut patient = Patient::new(&database.url_as("symphony_readonly").await);
    patient.toml = format!("[admin]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    assert_eq!(patient.examined(0).verdict("admin.listen"), "warn");
    patient.toml = "[admin]\nlisten = \"192.0.2.1:9464\"\n".to_owned();
    assert_eq!(patient.examined(1).verdict("admin.listen"), "fail");
}

#[tokio::test]
async fn a_wrong_configuration_is_wrong_use_and_a_reader_that_is_gone_changes_nothing() {
    let database = Database::new().await;
    let message = run("", &["doctor"], 2).stderr;
    assert!(message.contains("no database is configured"), "{message}");
    let mut refused = trestle(&database.url(), &["doctor"]);
    refused.env("TRESTLE_RAILS__X__KIND", "http").env("TRESTLE_RAILS__X__URL", "gopher://x/");
    let refused = refused.assert().code(2);
    let message = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(message.contains("`rails.x.url` must begin with https://"), "{message}");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("trestle"))
        .args(["doctor"])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .env("DATABASE_URL", database.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(1), "a superuser is too much");
}
