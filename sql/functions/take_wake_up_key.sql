-- Whoever waits for a lock inside a statement holds a snapshot, and keeps dead rows from being cleaned: so nobody
-- waits for long in one call. Asking again at once leaves a gap that nothing falls into for good: who gets the key
-- claims once more.
CREATE OR REPLACE FUNCTION outbox.take_wake_up_key() RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '10s'
AS $$
BEGIN
  PERFORM pg_advisory_lock(outbox.wake_up_key());
  RETURN true;
EXCEPTION WHEN lock_not_available THEN
  -- Caught here, because the server logs what reaches the client.
  RETURN false;
END
$$;
COMMENT ON FUNCTION outbox.take_wake_up_key() IS 'Takes the advisory lock of a sleeping worker for this session; false after 10 s without it: ask again.';
