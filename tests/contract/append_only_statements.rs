//! Every way that SQL has to change or remove a row.

use tokio_postgres::Client;

/// A table of the ledger or of the events: parent, partition or archived.
#[derive(Debug)]
pub(crate) struct Relation {
    pub(crate) name: String,
    key: &'static str,
    column: &'static str,
}

pub(crate) async fn relations(client: &Client) -> Vec<Relation> {
    const NAMES: &str = "SELECT c.oid::regclass::text FROM pg_class AS c \
        WHERE c.relnamespace IN ('outbox'::regnamespace, 'outbox_archive'::regnamespace) \
          AND c.relkind IN ('r', 'p') AND c.relname ~ '^payment_outbox_(attempts|events)' ORDER BY 1";
    let rows = client.query(NAMES, &[]).await.unwrap();
    rows.iter().map(|row| relation(row.get(0))).collect()
}

fn relation(name: String) -> Relation {
    if name.contains("payment_outbox_attempts") {
        Relation { name, key: "outbox_id, attempt_no", column: "worker_id" }
    } else {
        Relation { name, key: "event_id", column: "actor" }
    }
}

/// With rows that match, and with none: the refusal must not depend on that.
pub(crate) fn changes(relation: &Relation, server_version: i32) -> Vec<String> {
    let Relation { name, key, column } = relation;
    let upsert = format!("ON CONFLICT ({key}) DO UPDATE SET {column} = 'forged'");
    let mut changes = vec![
        format!("UPDATE {name} SET {column} = 'forged'"),
        format!("UPDATE {name} SET {column} = 'forged' WHERE false"),
        format!("UPDATE ONLY {name} SET {column} = {column}"),
        format!("DELETE FROM {name}"),
        format!("DELETE FROM {name} WHERE false"),
        format!("DELETE FROM ONLY {name} "),
        format!("WITH gone AS (DELETE FROM {name} RETURNING 1) SELECT count(*) FROM gone"),
        format!("INSERT INTO {name} SELECT * FROM {name} {upsert}"),
        format!("INSERT INTO {name} SELECT * FROM {name} WHERE false {upsert}"),
        format!("TRUNCATE {name} "),
        format!("TRUNCATE {name} RESTART IDENTITY CASCADE"),
    ];
    if server_version >= 150_000 {
        let merge = format!("MERGE INTO {name} AS t USING (SELECT 1) AS s ON");
        changes.extend([
            format!("{merge} true WHEN MATCHED THEN UPDATE SET {column} = 'forged'"),
            format!("{merge} false WHEN MATCHED THEN UPDATE SET {column} = 'forged'"),
            format!("{merge} true WHEN MATCHED THEN DELETE"),
            format!("{merge} false WHEN MATCHED THEN DELETE"),
        ]);
    }
    changes
}

pub(crate) fn truncations(table: &str, other: &str) -> [String; 4] {
    [
        format!("TRUNCATE {table}"),
        format!("TRUNCATE ONLY {table}"),
        format!("TRUNCATE {table} RESTART IDENTITY CASCADE"),
        format!("TRUNCATE {other}, {table}"),
    ]
}
