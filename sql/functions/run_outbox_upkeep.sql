-- One transaction at a time, and at most one partition archived or one slice of keys cleared in
-- each call, so that no lock is held for long: callers repeat while a row says 'again'.
CREATE OR REPLACE FUNCTION outbox.run_outbox_upkeep() RETURNS TABLE (action text, partition_name name, detail text)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET lock_timeout = '200ms'
AS $$
DECLARE
  v_parent name;
  v_step   text;
BEGIN
  IF NOT pg_try_advisory_xact_lock(outbox.wake_up_key() + 1) THEN
    RETURN QUERY SELECT 'busy', NULL::name, 'upkeep is running in another session';
    RETURN;
  END IF;
  FOREACH v_parent IN ARRAY ARRAY['payment_outbox_attempts', 'payment_outbox_events']::name[] LOOP
    FOR action, partition_name, detail IN
      SELECT * FROM outbox.default_partition_alarm(v_parent) UNION ALL SELECT * FROM outbox.create_partitions(v_parent)
    LOOP
      RETURN NEXT;
      v_step := COALESCE(v_step, NULLIF(action, 'alarm'));
    END LOOP;
    -- Locks are held until the commit: none is waited for while another keeps people waiting.
    IF v_step IS NOT NULL THEN
      IF v_step = 'created' THEN
        RETURN QUERY SELECT 'again', NULL::name, 'there may be more';
      END IF;
      RETURN;
    END IF;
  END LOOP;
  PERFORM outbox.place_lanes(r.rail_type) FROM unnest(outbox.due_rails()) AS r (rail_type);
  -- From here on every transaction is younger than the end of these partitions.
  UPDATE outbox.payment_outbox_partitions AS p SET closing_xid = pg_current_xact_id()
  WHERE p.archived_at IS NULL AND p.ends_at <= outbox.clock() AND (p.closing_xid IS NULL OR p.closing_xid > pg_current_xact_id());
  FOR action, partition_name, detail IN SELECT * FROM outbox.archive_oldest_partition() LOOP
    RETURN NEXT;
    v_step := COALESCE(v_step, NULLIF(action, 'kept'));
  END LOOP;
  -- Nobody can write to the ledger until we commit: what is to be dropped may be read by somebody.
  IF v_step IS DISTINCT FROM 'archived' THEN
    RETURN QUERY SELECT * FROM outbox.drop_archived_partitions();
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.run_outbox_upkeep() IS 'One pass of ledger upkeep: makes partitions ahead, archives those that are over, drops archived ones where a second age is set. Call again while a row says again.';
