CREATE OR REPLACE FUNCTION outbox.check_worker(p_worker_id text) RETURNS void
LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF p_worker_id IS NULL OR btrim(p_worker_id) = '' OR octet_length(p_worker_id) > 255 THEN
    RAISE EXCEPTION 'p_worker_id must be a text of 1 to 255 bytes that is unique to this start of the worker' USING ERRCODE = 'P7109';
  END IF;
  -- Every statement must see what was committed before it: a frozen snapshot would see leases and rows that are gone.
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'workers must call this at READ COMMITTED, not at %', upper(current_setting('transaction_isolation')) USING ERRCODE = 'P7115';
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.check_worker(text) IS 'Refuses a worker without a name or at the wrong isolation level.';
