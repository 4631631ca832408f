//! Takes a guard out of the database under test, to show that a proof can fail.

use super::Database;

impl Database {
    /// Replaces `guard`, which must occur in `function`, by `instead`: what is proved with the guard
    /// has to fail without it.
    pub(crate) async fn take_out(&self, function: &str, guard: &str, instead: &str) {
        const SOURCE: &str = "SELECT pg_get_functiondef(oid) FROM pg_proc \
            WHERE proname = $1 AND pronamespace = 'outbox'::regnamespace";
        let client = self.connect().await;
        let source: String = client.query_one(SOURCE, &[&function]).await.unwrap().get(0);
        assert!(source.contains(guard), "{function} has no guard {guard:?}:\n{source}");
        client.batch_execute(&source.replace(guard, instead)).await.unwrap();
    }
}
