CREATE OR REPLACE FUNCTION outbox.resume_outbox_lane(p_participant_id text, p_rail_type text, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_paused boolean;
  v_lanes  bigint[];
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  -- In a statement of its own: who took a turn away because of the pause had this lane locked, and what is listed
  -- after that is seen as it was left.
  PERFORM FROM outbox.payment_outbox_lanes AS l
  WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type AND l.solo_sequence_id = 0 FOR NO KEY UPDATE;
  -- With the lanes of single rows that a rail without order has: they wait with their participant's
  -- lane, and repair may have paused one of them alone.
  SELECT bool_or(l.paused), array_agg(l.lane_id) INTO v_paused, v_lanes FROM (
    SELECT l.lane_id, l.paused_at IS NOT NULL AS paused FROM outbox.payment_outbox_lanes AS l
    WHERE l.participant_id = p_participant_id AND l.rail_type = p_rail_type
    ORDER BY l.solo_sequence_id FOR NO KEY UPDATE) AS l;
  IF v_lanes IS NULL THEN
    PERFORM outbox.lock_lane(p_participant_id, p_rail_type);
  END IF;
  IF NOT v_paused THEN
    RAISE EXCEPTION 'the lane of participant_id % on rail_type % is not paused', quote_literal(p_participant_id), quote_literal(p_rail_type) USING ERRCODE = 'P7009';
  END IF;
  UPDATE outbox.payment_outbox_lanes AS l SET paused_at = NULL, paused_by = NULL, paused_reason = NULL
  WHERE l.lane_id = ANY (v_lanes) AND l.paused_at IS NOT NULL;
  PERFORM outbox.restart_lane(l.lane_id, 0) FROM unnest(v_lanes) AS l (lane_id);
  PERFORM outbox.log_event('LANE_RESUMED', p_actor, p_reason, p_participant_id, p_rail_type);
END
$$;
COMMENT ON FUNCTION outbox.resume_outbox_lane(text, text, text, text) IS 'Lets a paused lane go on.';
