CREATE OR REPLACE FUNCTION outbox.requeue_batch(p_turn_ids bigint[], p_worker_id text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_ids uuid[] := ARRAY(SELECT r.outbox_id FROM outbox.requeue_expired(p_turn_ids, p_worker_id, outbox.clock()) AS r);
BEGIN
  -- On a rail without order each row waits in a lane of its own.
  PERFORM outbox.admit_to_lane(p.participant_id, p.rail_type, p.sequence_id, p.tenant_id, p.sequence_id, p.next_attempt_at)
  FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (v_ids) AND p.solo AND p.turn_id IS NULL;
  PERFORM outbox.settle_lanes(p_turn_ids);
  RETURN cardinality(v_ids);
END
$$;
COMMENT ON FUNCTION outbox.requeue_batch(bigint[], text) IS 'Requeues what locked lanes have in a batch whose owner is lost, and returns how many rows that are.';
