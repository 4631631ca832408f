//! An external id and an e-mail address name one contact of a tenant.

use tokio_postgres::Client;

use crate::support::Database;

const NO_TENANT: Option<&str> = None;
const TENANT: Option<&str> = Some("10000000-0000-7000-8000-000000000000");
const OTHER_TENANT: Option<&str> = Some("20000000-0000-7000-8000-000000000000");
/// A tenant like any other, although an index may use it in the place of no tenant.
const NIL_TENANT: Option<&str> = Some("00000000-0000-0000-0000-000000000000");

/// What the function answers: "new", "known", or the SQLSTATE of the refusal.
async fn put(
    client: &Client,
    contact: &str,
    kind: &str,
    value: &str,
    tenant: Option<&str>,
) -> String {
    const CALL: &str = "SELECT outbox.put_contact_identity($1, $2, $3, $4::text::uuid)";
    match client.query_one(CALL, &[&contact, &kind, &value, &tenant]).await {
        Ok(row) => if row.get(0) { "new" } else { "known" }.to_owned(),
        Err(error) => error.code().expect("the server refused it").code().to_owned(),
    }
}

/// The same past the function: the constraint that refuses it, or "new".
async fn write(
    client: &Client,
    contact: &str,
    kind: &str,
    value: &str,
    tenant: Option<&str>,
) -> String {
    const INSERT: &str = "INSERT INTO outbox.contact_identities (tenant_id, contact_id, type, value, created_at) \
        VALUES ($4::text::uuid, $1, $2, $3, clock_timestamp())";
    match client.execute(INSERT, &[&contact, &kind, &value, &tenant]).await {
        Ok(_) => "new".to_owned(),
        Err(error) => {
            let told = error.as_db_error().expect("the server refused it");
            format!("{} {}", told.code().code(), told.constraint().unwrap_or_default())
        }
    }
}

#[tokio::test]
async fn an_external_id_names_one_contact_of_a_tenant() {
    let database = Database::new().await;
    let client = database.connect_as("symphony_ingest").await;
    let superuser = database.connect().await;
    for tenant in [TENANT, OTHER_TENANT, NO_TENANT, NIL_TENANT] {
        assert_eq!(
            put(&client, "alice", "external_id", "CRM-1", tenant).await,
            "new",
            "{tenant:?}"
        );
        assert_eq!(
            put(&client, "alice", "external_id", "CRM-1", tenant).await,
            "known",
            "{tenant:?}"
        );
        assert_eq!(
            put(&client, "bob", "external_id", "CRM-1", tenant).await,
            "P7013",
            "{tenant:?}"
        );
        let refused = write(&superuser, "bob", "external_id", "CRM-1", tenant).await;
        assert_eq!(refused, "23505 uniq_identity_external", "{tenant:?}");
    }
}

#[tokio::test]
async fn an_external_id_in_another_case_is_another_one() {
    let database = Database::new().await;
    let client = database.connect_as("symphony_ingest").await;
    assert_eq!(put(&client, "alice", "external_id", "CRM-1", TENANT).await, "new");
    assert_eq!(put(&client, "bob", "external_id", "crm-1", TENANT).await, "new");
}

#[tokio::test]
async fn an_email_in_any_case_names_one_contact_of_a_tenant() {
    let database = Database::new().await;
    let client = database.connect_as("symphony_ingest").await;
    let superuser = database.connect().await;
    for tenant in [TENANT, OTHER_TENANT, NO_TENANT, NIL_TENANT] {
        assert_eq!(
            put(&client, "alice", "email", "Alice@Example.com", tenant).await,
            "new",
            "{tenant:?}"
        );
        for same in ["Alice@Example.com", "alice@example.COM"] {
            assert_eq!(put(&client, "alice", "email", same, tenant).await, "known", "{tenant:?}");
            assert_eq!(put(&client, "bob", "email", same, tenant).await, "P7013", "{tenant:?}");
            let refused = write(&superuser, "bob", "email", same, tenant).await;
            assert_eq!(refused, "23505 uniq_identity_email_lower", "{tenant:?}");
        }
    }
}

#[tokio::test]
async fn a_name_and_a_phone_number_may_belong_to_many() {
    let database = Database::new().await;
    let client = database.connect_as("symphony_ingest").await;
    for kind in ["name", "phone"] {
        assert_eq!(put(&client, "alice", kind, "same", TENANT).await, "new");
        assert_eq!(put(&client, "bob", kind, "same", TENANT).await, "new");
        assert_eq!(put(&client, "bob", kind, "same", TENANT).await, "known");
    }
}

#[tokio::test]
async fn without_their_constraints_two_contacts_share_an_identity() {
    let database = Database::new().await;
    let client = database.connect().await;
    let drop = "DROP INDEX outbox.uniq_identity_external, outbox.uniq_identity_email_lower";
    client.batch_execute(drop).await.unwrap();
    for (kind, value, same) in [("external_id", "CRM-1", "CRM-1"), ("email", "a@b.c", "A@b.c")] {
        assert_eq!(put(&client, "alice", kind, value, TENANT).await, "new");
        assert_eq!(put(&client, "bob", kind, same, TENANT).await, "new");
        assert_eq!(write(&client, "carol", kind, same, TENANT).await, "new");
    }
}

#[tokio::test]
async fn a_refusal_does_not_repeat_the_personal_data() {
    let database = Database::new().await;
    let client = database.connect_as("symphony_ingest").await;
    assert_eq!(put(&client, "alice", "email", "alice@example.com", TENANT).await, "new");
    let again = "SELECT outbox.put_contact_identity('bob', 'email', 'alice@example.com', \
        '10000000-0000-7000-8000-000000000000')";
    let error = client.query_one(again, &[]).await.unwrap_err();
    let told = error.as_db_error().unwrap();
    assert_eq!(told.message(), "p_value: this email belongs to another contact of the tenant");
    assert!(!format!("{:?} {:?}", told.detail(), told.hint()).contains("alice@"));
}
