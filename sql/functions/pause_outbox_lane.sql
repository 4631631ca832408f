CREATE OR REPLACE FUNCTION outbox.pause_outbox_lane(p_participant_id text, p_rail_type text, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_fault text[] := outbox.enqueue_fault('-', p_participant_id, '-', NULLIF(p_rail_type, 'dlq'), '{}', NULL, NULL);
  v_lane  outbox.payment_outbox_lanes;
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  IF v_fault IS NOT NULL AND (p_rail_type IS DISTINCT FROM 'dlq' OR v_fault[1] <> 'P7103') THEN
    RAISE EXCEPTION USING ERRCODE = v_fault[1], MESSAGE = v_fault[2];
  END IF;
  -- A lane that has no work yet can be paused too: what is enqueued then waits.
  INSERT INTO outbox.payment_outbox_lanes AS l (participant_id, rail_type, shard, tenant_id)
  SELECT p_participant_id, p_rail_type, outbox.shard_of(p_participant_id, p_rail_type), (SELECT s.tenant_id FROM outbox.participant_outbox_sequences AS s WHERE s.participant_id = p_participant_id)
  ON CONFLICT (participant_id, rail_type, solo_sequence_id) DO UPDATE SET halted_by = l.halted_by
  RETURNING l.* INTO v_lane;
  IF v_lane.paused_at IS NOT NULL THEN
    RAISE EXCEPTION 'the lane of participant_id % on rail_type % is already paused', quote_literal(p_participant_id), quote_literal(p_rail_type) USING ERRCODE = 'P7009';
  END IF;
  UPDATE outbox.payment_outbox_lanes AS l SET paused_at = outbox.clock(), paused_by = p_actor, paused_reason = p_reason WHERE l.lane_id = v_lane.lane_id;
  -- Rows in flight finish; nothing new is claimed.
  DELETE FROM outbox.payment_outbox_turns AS t WHERE t.lane_id = v_lane.lane_id AND t.worker_id IS NULL;
  PERFORM outbox.log_event('LANE_PAUSED', p_actor, p_reason, p_participant_id, p_rail_type);
END
$$;
COMMENT ON FUNCTION outbox.pause_outbox_lane(text, text, text, text) IS 'Stops a lane: rows in flight finish, nothing new is claimed until it is resumed.';
