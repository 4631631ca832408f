-- NOTIFY takes a lock of the whole database at commit, so it is sent only when somebody sleeps:
-- a sleeping worker holds the key exclusively (or waits for it), and the shared lock is refused.
CREATE OR REPLACE FUNCTION outbox.notify_outbox_pending() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(outbox.wake_up_key())
     AND (SELECT s.wake_up FROM outbox.payment_outbox_settings AS s) THEN
    PERFORM pg_catalog.pg_notify('outbox_pending', 'new_work');
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.notify_outbox_pending() IS 'Wakes sleeping workers, at most once a statement. Switched off by set_outbox_settings.';
