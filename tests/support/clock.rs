//! Time that a test moves by hand.

use std::time::Duration;

use super::Database;

/// Everyone may read the offset: some functions run as their owner, others as their caller.
const TAKE_OVER: &str = "
    CREATE SCHEMA test;
    GRANT USAGE ON SCHEMA test TO PUBLIC;
    CREATE TABLE test.clock (ahead interval NOT NULL);
    INSERT INTO test.clock VALUES ('0');
    GRANT SELECT ON test.clock TO PUBLIC;
    CREATE OR REPLACE FUNCTION outbox.clock() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.clock_timestamp() + (SELECT ahead FROM test.clock) $$;";

const PASS: &str =
    "UPDATE test.clock SET ahead = ahead + (SELECT max(lease_expires_at) - outbox.clock()
    FROM outbox.payment_outbox_pending WHERE lease_token IS NOT NULL)";

const ADVANCE: &str = "UPDATE test.clock SET ahead = ahead + make_interval(secs => $1)";

impl Database {
    /// From here on the outbox's clock goes by [`Database::advance`].
    pub(crate) async fn control_clock(&self) {
        self.connect().await.batch_execute(TAKE_OVER).await.expect("the clock can be replaced");
    }

    /// Moves the outbox's clock to where the last lease ends. Whoever is there then repairs them before a
    /// claim would; who has leases of its own must not be.
    pub(crate) async fn let_the_leases_pass(&self) {
        self.connect().await.batch_execute(PASS).await.expect("somebody has a lease");
    }

    /// Moves the outbox's clock; [`Database::control_clock`] comes first.
    pub(crate) async fn advance(&self, by: Duration) {
        self.connect().await.execute(ADVANCE, &[&by.as_secs_f64()]).await.expect("a clock of ours");
    }
}
