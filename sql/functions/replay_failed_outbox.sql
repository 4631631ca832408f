CREATE OR REPLACE FUNCTION outbox.replay_failed_outbox(p_outbox_id uuid, p_actor text, p_reason text)
RETURNS TABLE (outbox_id uuid, sequence_id bigint)
LANGUAGE plpgsql SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_id     uuid := outbox.uuidv7();
  v_now    timestamptz := outbox.clock();
  v_failed record;
  v_was    outbox.payment_outbox_attempts;
  v_seq    bigint;
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  -- A new number is taken before the lane is locked: its lock may be a producer's for as long as
  -- that transaction runs, and nobody's completion is to wait behind us meanwhile.
  v_seq := outbox.number_for_replay(p_outbox_id);
  v_failed := outbox.open_failure(p_outbox_id);
  SELECT * INTO v_was FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_outbox_id AND a.state = 'FAILED';
  IF v_failed.halted_lane <> (v_seq = v_was.sequence_id) THEN
    RAISE EXCEPTION 'the lane of % was changed at the same time', p_outbox_id USING ERRCODE = '40001', HINT = 'Run the command again.';
  END IF;

  UPDATE outbox.payment_outbox_failures AS f
  SET resolution = 'REPLAYED', replay_outbox_id = v_id, resolved_at = v_now, resolved_by = p_actor, resolved_reason = p_reason
  WHERE f.outbox_id = p_outbox_id;
  INSERT INTO outbox.payment_outbox_pending (
    outbox_id, tenant_id, instruction_id, participant_id, sequence_id, lane_position, idempotency_key, rail_type, payload, headers,
    next_attempt_at, created_at, replay_of)
  VALUES (v_id, v_was.tenant_id, v_was.instruction_id, v_was.participant_id, v_seq, v_seq, v_was.idempotency_key, v_was.rail_type,
    v_was.payload, v_was.headers, v_now, v_now, p_outbox_id);
  IF v_failed.halted_lane THEN
    UPDATE outbox.payment_outbox_lanes AS l SET halted_by = NULL WHERE l.lane_id = v_failed.lane_id;
    PERFORM outbox.restart_lane(v_failed.lane_id, v_seq);
  ELSE
    PERFORM outbox.admit_to_lane(v_was.participant_id, v_was.rail_type, 0, v_was.tenant_id, v_seq, v_now);
  END IF;
  PERFORM outbox.log_event('FAILED_REPLAYED', p_actor, p_reason, v_was.participant_id, v_was.rail_type, ARRAY[p_outbox_id, v_id]);
  RETURN QUERY SELECT v_id, v_seq;
END
$$;
COMMENT ON FUNCTION outbox.replay_failed_outbox(uuid, text, text) IS 'Brings a FAILED row back as a new row with the same idempotency key toward the rail. In the lane that it halted it keeps its number and goes first; elsewhere it takes a new one.';
