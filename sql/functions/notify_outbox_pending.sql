-- Fired by an insert while somebody sleeps.
CREATE OR REPLACE FUNCTION outbox.notify_outbox_pending() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
  IF (SELECT s.wake_up FROM outbox.payment_outbox_settings AS s) THEN
    PERFORM pg_catalog.pg_notify('outbox_pending', 'new_work');
  END IF;
  RETURN NULL;
END
$$;
COMMENT ON FUNCTION outbox.notify_outbox_pending() IS 'Wakes sleeping workers, at most once a statement. Switched off by set_outbox_settings.';
