CREATE OR REPLACE FUNCTION outbox.requeue_batch(p_turn_ids bigint[], p_worker_id text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_rows integer := (SELECT count(*) FROM outbox.requeue_expired(p_turn_ids, p_worker_id, outbox.clock()));
BEGIN
  -- On a rail without order each row waits in a lane of its own.
  PERFORM outbox.admit_to_lane(p.participant_id, p.rail_type, p.sequence_id, p.tenant_id, p.sequence_id, p.next_attempt_at)
  FROM outbox.payment_outbox_pending AS p JOIN outbox.payment_outbox_lanes AS l ON l.participant_id = p.participant_id AND l.rail_type = p.rail_type
  JOIN outbox.payment_outbox_turns AS t ON t.lane_id = l.lane_id
  WHERE t.turn_id = ANY (p_turn_ids) AND p.solo AND p.turn_id IS NULL;
  PERFORM outbox.settle_lanes(p_turn_ids);
  RETURN v_rows;
END
$$;
COMMENT ON FUNCTION outbox.requeue_batch(bigint[], text) IS 'Requeues what locked lanes have in a batch whose owner is lost, and returns how many rows that are.';
