-- Statement triggers are not inherited, so each partition has its own, made with it. They fire
-- ALWAYS: session_replication_role does not get around them.
SELECT outbox.make_append_only('outbox', 'payment_outbox_attempts');
SELECT outbox.make_append_only('outbox', 'payment_outbox_attempts_default');
SELECT outbox.make_append_only('outbox', 'payment_outbox_events');
SELECT outbox.make_append_only('outbox', 'payment_outbox_events_default');
