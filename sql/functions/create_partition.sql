CREATE OR REPLACE FUNCTION outbox.create_partition(p_parent name, p_from timestamptz, p_to timestamptz)
RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_name   name := p_parent || to_char(p_from AT TIME ZONE 'UTC', '"_"YYYYMMDD');
  v_lower  uuid := outbox.uuidv7_floor(p_from);
  v_upper  uuid := outbox.uuidv7_floor(p_to);
  v_key    name := CASE p_parent WHEN 'payment_outbox_attempts' THEN 'outbox_id' ELSE 'event_id' END;
  v_strays boolean;
BEGIN
  EXECUTE format('SELECT EXISTS (SELECT FROM outbox.%I WHERE %I >= $1 AND %I < $2)', p_parent || '_default', v_key, v_key)
    INTO v_strays USING v_lower, v_upper;
  IF v_strays THEN
    RETURN QUERY SELECT 'alarm', v_name, 'not made: the default partition already has rows of this time';
    RETURN;
  END IF;
  -- Made apart and then attached: CREATE … PARTITION OF would lock the parent for longer.
  EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.%I INCLUDING ALL)', v_name, p_parent);
  PERFORM outbox.make_append_only('outbox', v_name);
  EXECUTE format('GRANT SELECT ON outbox.%I TO symphony_operator', v_name);
  EXECUTE format('ALTER TABLE outbox.%I ATTACH PARTITION outbox.%I FOR VALUES FROM (%L) TO (%L)', p_parent, v_name, v_lower, v_upper);
  INSERT INTO outbox.payment_outbox_partitions (partition_name, parent_name, from_id, to_id, ends_at)
  VALUES (v_name, p_parent, v_lower, v_upper, p_to);
  RETURN QUERY SELECT 'created', v_name, format('%s to %s', to_char(p_from AT TIME ZONE 'UTC', 'YYYY-MM-DD'), to_char(p_to AT TIME ZONE 'UTC', 'YYYY-MM-DD'));
EXCEPTION WHEN lock_not_available THEN
  RETURN QUERY SELECT 'busy', v_name, 'not made: the ledger was locked, tried again at the next pass';
END
$$;
COMMENT ON FUNCTION outbox.create_partition(name, timestamptz, timestamptz) IS 'Makes one partition, append-only from the start, unless the default partition has rows of its time.';
