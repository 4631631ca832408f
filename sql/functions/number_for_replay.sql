CREATE OR REPLACE FUNCTION outbox.number_for_replay(p_outbox_id uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_failure outbox.payment_outbox_failures;
BEGIN
  SELECT f.* INTO v_failure FROM outbox.payment_outbox_failures AS f WHERE f.outbox_id = p_outbox_id AND f.resolution IS NULL;
  -- The number of the row that halted its lane is free, and before everything that waits.
  IF NOT FOUND OR EXISTS (SELECT FROM outbox.payment_outbox_lanes AS l WHERE l.participant_id = v_failure.participant_id
                          AND l.rail_type = v_failure.rail_type AND l.halted_by = p_outbox_id) THEN
    RETURN v_failure.sequence_id;
  END IF;
  RETURN outbox.bump_participant_outbox_seq(v_failure.participant_id, v_failure.tenant_id);
END
$$;
COMMENT ON FUNCTION outbox.number_for_replay(uuid) IS 'Its own number for the row that halted its lane, else a new one.';
