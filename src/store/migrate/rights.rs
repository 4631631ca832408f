//! Finds every missing right before anything is tried, so that the operator asks only once.

use tokio_postgres::Transaction;

use super::MigrateError;
use super::control::CONTROL;

/// A right that the connecting user lacks.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingRight {
    /// What it is needed for.
    pub reason: String,
    /// The SQL that gives it.
    pub remedy: String,
}

/// The group roles that `sql/roles.sql` creates.
const GROUP_ROLES: [&str; 6] = [
    "symphony_auditor",
    CONTROL,
    "symphony_executor",
    "symphony_ingest",
    "symphony_operator",
    "symphony_readonly",
];

/// Schemas that belong to the control role.
pub(super) const SCHEMAS: [&str; 2] = ["outbox", "outbox_archive"];

/// Since 16 CREATEROLE alone gives no power over roles that somebody else created.
const ROLES_HAVE_ADMINS: i32 = 160_000;

const FACTS: &str = "SELECT \
    current_setting('server_version_num')::int4 AS server_version, \
    quote_ident(current_user) AS user_name, \
    quote_ident(current_database()) AS database_name, \
    me.rolsuper AS superuser, \
    me.rolcreaterole AS create_role, \
    has_database_privilege(current_database(), 'CREATE') AS create_schema, \
    ARRAY(SELECT n FROM unnest($1::text[]) n \
          WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = n) ORDER BY n) AS missing_roles, \
    ARRAY(SELECT n FROM unnest($2::text[]) n \
          WHERE NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = n) ORDER BY n) AS missing_schemas, \
    ARRAY(SELECT nspname::text FROM pg_namespace \
          WHERE nspname = ANY ($2) AND nspowner::regrole::text <> $3 ORDER BY 1) AS foreign_schemas, \
    EXISTS (SELECT FROM pg_auth_members m \
            WHERE m.roleid = (SELECT oid FROM pg_roles WHERE rolname = $3) AND m.admin_option \
              AND pg_has_role(m.member, 'USAGE')) AS control_admin \
    FROM pg_roles me WHERE me.rolname = current_user";

const CAN_SET_CONTROL: &str = "SELECT coalesce(bool_or(pg_has_role(oid, $2)), false) \
    FROM pg_roles WHERE rolname = $1";

/// What the connecting user is and may.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) server_version: i32,
    pub(super) user: String,
    database: String,
    pub(super) superuser: bool,
    create_role: bool,
    create_schema: bool,
    pub(super) missing_roles: Vec<String>,
    pub(super) missing_schemas: Vec<String>,
    foreign_schemas: Vec<String>,
    control_admin: bool,
    /// Can already become the control role, without a grant.
    pub(super) can_set_control: bool,
}

impl Facts {
    pub(super) async fn read(transaction: &Transaction<'_>) -> Result<Self, MigrateError> {
        let (roles, schemas) = (GROUP_ROLES.as_slice(), SCHEMAS.as_slice());
        let row = transaction.query_one(FACTS, &[&roles, &schemas, &CONTROL]).await?;
        let server_version: i32 = row.try_get("server_version")?;
        let right = if server_version >= ROLES_HAVE_ADMINS { "SET" } else { "MEMBER" };
        let can_set = transaction.query_one(CAN_SET_CONTROL, &[&CONTROL, &right]).await?;
        Ok(Self {
            server_version,
            user: row.try_get("user_name")?,
            database: row.try_get("database_name")?,
            superuser: row.try_get("superuser")?,
            create_role: row.try_get("create_role")?,
            create_schema: row.try_get("create_schema")?,
            missing_roles: row.try_get("missing_roles")?,
            missing_schemas: row.try_get("missing_schemas")?,
            foreign_schemas: row.try_get("foreign_schemas")?,
            control_admin: row.try_get("control_admin")?,
            can_set_control: can_set.try_get(0)?,
        })
    }

    /// Membership options are written differently since 16.
    pub(super) fn has_membership_options(&self) -> bool {
        self.server_version >= ROLES_HAVE_ADMINS
    }

    /// Every right that is missing, in the order in which it would be needed.
    pub(super) fn missing_rights(&self) -> Vec<MissingRight> {
        let mut missing = Vec::new();
        if !self.superuser {
            missing.extend(self.missing_role_right());
            missing.extend(self.missing_control_right());
            missing.extend(self.missing_schema_right());
        }
        missing.extend(self.foreign_schemas.iter().map(|schema| MissingRight {
            reason: format!("schema {schema} exists and belongs to another role"),
            remedy: format!("ALTER SCHEMA {schema} OWNER TO {CONTROL};"),
        }));
        missing
    }

    fn missing_role_right(&self) -> Option<MissingRight> {
        (!self.missing_roles.is_empty() && !self.create_role).then(|| MissingRight {
            reason: format!("to create the roles {}", self.missing_roles.join(", ")),
            remedy: format!("ALTER ROLE {} CREATEROLE;", self.user),
        })
    }

    fn missing_control_right(&self) -> Option<MissingRight> {
        let exists = !self.missing_roles.iter().any(|role| role == CONTROL);
        if !exists || self.can_set_control || self.control_admin {
            return None;
        }
        let reason = format!("to become {CONTROL}, which owns the outbox, while migrate runs");
        if self.has_membership_options() {
            let remedy = format!(
                "GRANT {CONTROL} TO {} WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;",
                self.user
            );
            return Some(MissingRight { reason, remedy });
        }
        // Said once is enough when the roles have to be created as well.
        (!self.create_role && self.missing_roles.is_empty()).then(|| MissingRight {
            reason,
            remedy: format!("ALTER ROLE {} CREATEROLE;", self.user),
        })
    }

    fn missing_schema_right(&self) -> Option<MissingRight> {
        (!self.missing_schemas.is_empty() && !self.create_schema).then(|| MissingRight {
            reason: format!("to create the schemas {}", self.missing_schemas.join(", ")),
            remedy: format!("GRANT CREATE ON DATABASE {} TO {};", self.database, self.user),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Facts;

    fn nobody(server_version: i32) -> Facts {
        Facts {
            server_version,
            user: "deploy".to_owned(),
            database: "pay".to_owned(),
            superuser: false,
            create_role: false,
            create_schema: false,
            missing_roles: Vec::new(),
            missing_schemas: vec!["outbox".to_owned()],
            foreign_schemas: Vec::new(),
            control_admin: false,
            can_set_control: false,
        }
    }

    fn remedies(facts: &Facts) -> Vec<String> {
        facts.missing_rights().into_iter().map(|right| right.remedy).collect()
    }

    #[test]
    fn each_missing_right_is_named_with_the_sql_that_gives_it() {
        assert_eq!(
            remedies(&nobody(150_000)),
            ["ALTER ROLE deploy CREATEROLE;", "GRANT CREATE ON DATABASE pay TO deploy;"]
        );
        assert_eq!(
            remedies(&nobody(160_000)),
            [
                "GRANT symphony_control TO deploy WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;",
                "GRANT CREATE ON DATABASE pay TO deploy;"
            ]
        );
    }

    #[test]
    fn one_remedy_is_not_listed_twice() {
        let facts = Facts { missing_roles: vec!["symphony_ingest".to_owned()], ..nobody(150_000) };
        assert_eq!(
            remedies(&facts),
            ["ALTER ROLE deploy CREATEROLE;", "GRANT CREATE ON DATABASE pay TO deploy;"]
        );
    }

    #[test]
    fn a_superuser_lacks_nothing() {
        assert!(remedies(&Facts { superuser: true, ..nobody(160_000) }).is_empty());
    }
}
