-- Locks the lane first, then the failure: the lock order of the whole contract.
CREATE OR REPLACE FUNCTION outbox.open_failure(
  p_outbox_id uuid, OUT participant_id text, OUT rail_type text, OUT sequence_id bigint, OUT lane_id bigint, OUT halted_lane boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_failure outbox.payment_outbox_failures;
BEGIN
  SELECT l.lane_id, l.halted_by IS NOT DISTINCT FROM p_outbox_id INTO lane_id, halted_lane
  FROM outbox.payment_outbox_failures AS f
  JOIN outbox.payment_outbox_lanes AS l ON l.participant_id = f.participant_id AND l.rail_type = f.rail_type AND l.solo_sequence_id = 0
  WHERE f.outbox_id = p_outbox_id FOR NO KEY UPDATE OF l;
  halted_lane := COALESCE(halted_lane, false);
  SELECT f.* INTO v_failure FROM outbox.payment_outbox_failures AS f WHERE f.outbox_id = p_outbox_id FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'p_outbox_id % is not a FAILED row', COALESCE(p_outbox_id::text, 'null') USING ERRCODE = 'P7010';
  END IF;
  IF v_failure.resolution IS NOT NULL THEN
    RAISE EXCEPTION 'the failure of % was already % by % at %', p_outbox_id, v_failure.resolution, v_failure.resolved_by, v_failure.resolved_at USING ERRCODE = 'P7011';
  END IF;
  participant_id := v_failure.participant_id;
  rail_type := v_failure.rail_type;
  sequence_id := v_failure.sequence_id;
END
$$;
COMMENT ON FUNCTION outbox.open_failure(uuid) IS 'Locks a failure that nobody has resolved, and its lane; P7010 where there is none, P7011 where it is resolved.';
