CREATE OR REPLACE FUNCTION outbox.resume_outbox_lane(p_participant_id text, p_rail_type text, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_lane outbox.payment_outbox_lanes;
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  v_lane := outbox.lock_lane(p_participant_id, p_rail_type);
  IF v_lane.paused_at IS NULL THEN
    RAISE EXCEPTION 'the lane of participant_id % on rail_type % is not paused', quote_literal(p_participant_id), quote_literal(p_rail_type) USING ERRCODE = 'P7009';
  END IF;
  UPDATE outbox.payment_outbox_lanes AS l SET paused_at = NULL, paused_by = NULL, paused_reason = NULL WHERE l.lane_id = v_lane.lane_id;
  PERFORM outbox.restart_lane(v_lane.lane_id, 0);
  PERFORM outbox.log_event('LANE_RESUMED', p_actor, p_reason, p_participant_id, p_rail_type);
END
$$;
COMMENT ON FUNCTION outbox.resume_outbox_lane(text, text, text, text) IS 'Lets a paused lane go on.';
