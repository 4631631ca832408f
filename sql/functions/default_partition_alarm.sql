CREATE OR REPLACE FUNCTION outbox.default_partition_alarm(p_parent name) RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_name name := p_parent || '_default';
  v_any  boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM outbox.%I)', v_name) INTO v_any;
  IF v_any THEN
    RETURN QUERY SELECT 'alarm', v_name, 'the default partition is not empty: upkeep did not run in time, or a clock was wrong';
  END IF;
EXCEPTION WHEN lock_not_available THEN
  RETURN QUERY SELECT 'busy', v_name, 'not looked at: it was locked, tried again at the next pass';
END
$$;
COMMENT ON FUNCTION outbox.default_partition_alarm(name) IS 'Says so when rows fell into the default partition.';
