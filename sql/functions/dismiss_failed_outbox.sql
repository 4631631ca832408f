CREATE OR REPLACE FUNCTION outbox.dismiss_failed_outbox(p_outbox_id uuid, p_actor text, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_failed record;
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  v_failed := outbox.open_failure(p_outbox_id);
  UPDATE outbox.payment_outbox_failures AS f
  SET resolution = 'DISMISSED', resolved_at = outbox.clock(), resolved_by = p_actor, resolved_reason = p_reason
  WHERE f.outbox_id = p_outbox_id;
  IF v_failed.halted_lane THEN
    UPDATE outbox.payment_outbox_lanes AS l SET halted_by = NULL WHERE l.lane_id = v_failed.lane_id;
    PERFORM outbox.restart_lane(v_failed.lane_id, v_failed.sequence_id);
  END IF;
  PERFORM outbox.log_event('FAILED_DISMISSED', p_actor, p_reason, v_failed.participant_id, v_failed.rail_type, ARRAY[p_outbox_id]);
END
$$;
COMMENT ON FUNCTION outbox.dismiss_failed_outbox(uuid, text, text) IS 'Closes a FAILED row for good, with a reason; a lane that it halted goes on.';
