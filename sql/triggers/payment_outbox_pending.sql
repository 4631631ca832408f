-- NOTIFY takes a lock of the whole database at commit, so it is sent only when somebody sleeps:
-- a sleeping worker holds the key exclusively (or waits for it), and the shared lock is refused.
-- The condition stands here, with the key as a number, because a call of the function for every
-- enqueue, only to find everybody awake, would cost a tenth of it.
DO $install$
BEGIN
  EXECUTE pg_catalog.format(
    'CREATE OR REPLACE TRIGGER payment_outbox_pending_notify
       AFTER INSERT ON outbox.payment_outbox_pending
       FOR EACH STATEMENT WHEN (NOT pg_catalog.pg_try_advisory_xact_lock_shared(%s))
       EXECUTE FUNCTION outbox.notify_outbox_pending()', outbox.wake_up_key());
END
$install$;

CREATE OR REPLACE TRIGGER payment_outbox_pending_no_truncate
  BEFORE TRUNCATE ON outbox.payment_outbox_pending
  FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_truncate();
ALTER TABLE outbox.payment_outbox_pending ENABLE ALWAYS TRIGGER payment_outbox_pending_no_truncate;
