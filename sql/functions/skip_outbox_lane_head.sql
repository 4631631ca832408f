-- The head is leased to the operator and then completed as FAILED, so that a skip takes the same
-- way out of pending as every other outcome: ledger, dead letter, failures.
CREATE OR REPLACE FUNCTION outbox.skip_outbox_lane_head(p_participant_id text, p_rail_type text, p_actor text, p_reason text) RETURNS uuid
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_lane   outbox.payment_outbox_lanes;
  v_head   record;
  v_turn   bigint;
  v_worker text := left('operator:' || p_actor, 70);
  v_now    timestamptz := outbox.clock();
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  v_lane := outbox.lock_lane(p_participant_id, p_rail_type);
  IF v_lane.halted_by IS NOT NULL THEN
    -- The row that halted the lane has left it already: the lane goes on, the row stays a failure.
    UPDATE outbox.payment_outbox_lanes AS l SET halted_by = NULL WHERE l.lane_id = v_lane.lane_id;
    PERFORM outbox.restart_lane(v_lane.lane_id, 0);
    PERFORM outbox.log_event('LANE_HEAD_SKIPPED', p_actor, p_reason, p_participant_id, p_rail_type, ARRAY[v_lane.halted_by]);
    RETURN v_lane.halted_by;
  END IF;
  IF p_rail_type = 'dlq' THEN
    RAISE EXCEPTION 'a dead letter is never skipped: dismiss the failure instead' USING ERRCODE = 'P7104';
  END IF;
  IF EXISTS (SELECT FROM outbox.payment_outbox_turns AS t WHERE t.lane_id = v_lane.lane_id AND t.worker_id IS NOT NULL) THEN
    RAISE EXCEPTION 'the head of the lane of participant_id % on rail_type % is leased', quote_literal(p_participant_id), quote_literal(p_rail_type)
      USING ERRCODE = 'P7007', HINT = 'It may be on its way. Wait for its outcome, or pause the lane first.';
  END IF;
  SELECT r.* INTO v_head FROM outbox.lane_rows(p_participant_id, p_rail_type, 0, 0) AS r ORDER BY r.lane_position LIMIT 1;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lane of participant_id % on rail_type % has no row to skip', quote_literal(p_participant_id), quote_literal(p_rail_type) USING ERRCODE = 'P7008';
  END IF;

  DELETE FROM outbox.payment_outbox_turns AS t WHERE t.lane_id = v_lane.lane_id;
  INSERT INTO outbox.payment_outbox_turns (lane_id, rail_type, tenant_id, due_at, head_position, last_position, worker_id)
  VALUES (v_lane.lane_id, v_lane.rail_type, v_lane.tenant_id, v_now + interval '1 minute', v_head.lane_position, v_head.lane_position, v_worker)
  RETURNING turn_id INTO v_turn;
  UPDATE outbox.payment_outbox_pending AS p
  SET claimed_by = v_worker, claimed_at = v_now, lease_token = gen_random_uuid(), lease_expires_at = v_now + interval '1 minute', turn_id = v_turn
  WHERE p.outbox_id = v_head.outbox_id RETURNING p.lease_token INTO v_head.lease_token;
  PERFORM outbox.complete_outbox_attempt(v_head.outbox_id, v_head.lease_token, v_worker, 'FAILED',
    p_error_code => 'SKIPPED_BY_OPERATOR', p_error_message => p_reason);
  -- The operator decided about this row: on a rail that halts, the lane does not wait for it.
  UPDATE outbox.payment_outbox_lanes AS l SET halted_by = NULL WHERE l.lane_id = v_lane.lane_id AND l.halted_by IS NOT NULL;
  PERFORM outbox.restart_lane(v_lane.lane_id, v_head.lane_position);
  PERFORM outbox.log_event('LANE_HEAD_SKIPPED', p_actor, p_reason, p_participant_id, p_rail_type, ARRAY[v_head.outbox_id]);
  RETURN v_head.outbox_id;
END
$$;
COMMENT ON FUNCTION outbox.skip_outbox_lane_head(text, text, text, text) IS 'Takes the head out of a lane as FAILED (SKIPPED_BY_OPERATOR), or lets a halted lane go on past the row that halted it. Refuses a leased head (P7007). Returns the row that was skipped.';
