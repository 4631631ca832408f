CREATE OR REPLACE FUNCTION outbox.complete_outbox_attempt(
  p_outbox_id uuid, p_lease_token uuid, p_worker_id text, p_state outbox.outbox_attempt_state,
  p_rail_reference text DEFAULT NULL, p_rail_code text DEFAULT NULL, p_error_code text DEFAULT NULL, p_error_message text DEFAULT NULL,
  p_latency_ms integer DEFAULT NULL, p_retry_delay_seconds integer DEFAULT NULL, p_counted boolean DEFAULT true
) RETURNS TABLE (attempt_no integer, state outbox.outbox_attempt_state)
LANGUAGE plpgsql SECURITY DEFINER ROWS 1
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_done record;
BEGIN
  -- One row has no others to hold up, so it waits for its lane.
  LOOP
    SELECT * INTO v_done FROM outbox.complete_outbox_batch(
      p_worker_id, ARRAY[p_outbox_id], ARRAY[p_lease_token], ARRAY[p_state], ARRAY[p_rail_reference], ARRAY[p_rail_code],
      ARRAY[p_error_code], ARRAY[p_error_message], ARRAY[p_latency_ms], ARRAY[p_retry_delay_seconds], ARRAY[p_counted]);
    EXIT WHEN v_done.refusal IS DISTINCT FROM 'P7018';
    PERFORM FROM outbox.payment_outbox_lanes AS l
    WHERE l.lane_id = (SELECT t.lane_id FROM outbox.payment_outbox_turns AS t
                       JOIN outbox.payment_outbox_pending AS p ON p.turn_id = t.turn_id WHERE p.outbox_id = p_outbox_id)
    FOR NO KEY UPDATE;
  END LOOP;
  IF v_done.refusal IS NOT NULL THEN
    PERFORM outbox.raise_refusal(v_done.refusal, p_outbox_id, p_state);
  END IF;
  RETURN QUERY SELECT v_done.attempt_no, v_done.state;
END
$$;
COMMENT ON FUNCTION outbox.complete_outbox_attempt(uuid, uuid, text, outbox.outbox_attempt_state, text, text, text, text, integer, integer, boolean) IS 'Records one outcome, fenced by worker and lease token: P7001 already terminal, P7002 lease lost, P7003 not an outcome, P7006 an earlier row of the lane comes first.';
