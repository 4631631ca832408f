//! Calls a function with one bad argument at a time, and reports what was not refused as it should be.

use tokio_postgres::{Client, Error};

/// Stands in payloads and must not stand in any message.
pub(crate) const SECRET: &str = "TOP-SECRET";

/// A function and arguments that it accepts, in SQL.
pub(crate) struct Call {
    pub(crate) function: &'static str,
    pub(crate) good: Vec<(&'static str, String)>,
}

/// A bad argument (or several, joined by +, that get the same value), the SQLSTATE that refuses it,
/// and what the message must say, which is nearly always the argument's name.
pub(crate) type Case = (&'static str, &'static str, &'static str, &'static str);

impl Call {
    pub(crate) fn new(function: &'static str, good: &[(&'static str, &str)]) -> Self {
        let good = good.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { function, good }
    }

    pub(crate) fn sql(&self, names: &str, value: &str) -> String {
        let mut arguments = self.good.clone();
        for name in names.split('+').filter(|name| !name.is_empty()) {
            arguments.retain(|(known, _)| *known != name);
            let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
            arguments.push((name, value.to_owned()));
        }
        let arguments: Vec<_> =
            arguments.iter().map(|(name, value)| format!("{name} => {value}")).collect();
        format!("SELECT * FROM outbox.{}({})", self.function, arguments.join(", "))
    }
}

fn told(result: Result<(), Error>) -> Result<(), (String, String)> {
    result.map_err(|error| {
        let told = error.as_db_error().expect("the server refused it");
        let everything = [Some(told.message()), told.detail(), told.hint(), told.where_()];
        (
            told.code().code().to_owned(),
            everything.into_iter().flatten().collect::<Vec<_>>().join(" "),
        )
    })
}

/// The cases that were not refused as they should be, each with what happened instead.
pub(crate) async fn wrong(client: &Client, call: &Call, cases: &[Case]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (argument, value, sqlstate, says) in cases {
        let shown: String = value.chars().take(60).collect();
        let about = format!("{argument} => {shown}");
        match told(client.batch_execute(&call.sql(argument, value)).await) {
            Ok(()) => wrong.push(format!("{about}: done")),
            Err((code, message))
                if code != *sqlstate || !message.contains(says) || message.contains(SECRET) =>
            {
                wrong.push(format!("{about}: {code} {message}"));
            }
            Err(_) => {}
        }
    }
    wrong
}

/// The cases that go through, each tried on its own and taken back: what a guard is for.
pub(crate) async fn let_through(client: &Client, call: &Call, cases: &[Case]) -> Vec<String> {
    let mut through = Vec::new();
    for (argument, value, ..) in cases {
        client.batch_execute("BEGIN").await.unwrap();
        if client.batch_execute(&call.sql(argument, value)).await.is_ok() {
            through.push(format!("{argument} => {value}"));
        }
        client.batch_execute("ROLLBACK").await.unwrap();
    }
    through
}

/// A digest of every row of every table.
async fn state(client: &Client) -> Vec<(String, String)> {
    const TABLES: &str = "SELECT c.relname::text FROM pg_class AS c \
        WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1";
    let mut state = Vec::new();
    for row in client.query(TABLES, &[]).await.unwrap() {
        let table: String = row.get(0);
        let digest = format!(
            "SELECT md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) FROM outbox.{table} AS t"
        );
        state.push((table, client.query_one(&digest, &[]).await.unwrap().get(0)));
    }
    state
}

/// Every case is refused and changes nothing, while the call without the bad argument goes through.
/// `witness` sees everything; `client` has the rights of whoever calls the function.
pub(crate) async fn assert_refused(witness: &Client, client: &Client, call: &Call, cases: &[Case]) {
    let before = state(witness).await;
    assert_eq!(wrong(client, call, cases).await, [""; 0], "{}", call.function);
    assert_eq!(state(witness).await, before, "{}", call.function);
    let good = client.batch_execute(&call.sql("", "")).await;
    assert_eq!(told(good), Ok(()), "{}", call.function);
}

/// The call is refused at every isolation level but READ COMMITTED.
pub(crate) async fn assert_needs_read_committed(client: &Client, call: &Call) {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        client.batch_execute(&format!("BEGIN ISOLATION LEVEL {level}")).await.unwrap();
        let told = told(client.batch_execute(&call.sql("", "")).await);
        client.batch_execute("ROLLBACK").await.unwrap();
        let (code, message) = told.expect_err(call.function);
        assert_eq!(code, "P7115", "{}", call.function);
        assert!(message.contains(&format!("READ COMMITTED, not at {level}")), "{message}");
    }
}
