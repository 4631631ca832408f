-- A worker that is still there gives its rows back as if they had never been claimed: they were not sent,
-- as far as anybody can see. With one that is gone, its rows are under suspicion like those of an expired lease.
CREATE OR REPLACE FUNCTION outbox.return_batch(p_worker_id text, p_epoch bigint, p_turn_ids bigint[]) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_own    record;
  v_lost   bigint[];
  v_count  integer;
BEGIN
  IF cardinality(p_turn_ids) = 0 THEN
    RETURN 0;
  END IF;
  -- OFFSET 0: one look-up for each lane. To join whole tables would walk over the backlog.
  SELECT array_agg(r.outbox_id) AS ids, array_agg(r.lease_token) AS tokens INTO v_own
  FROM outbox.payment_outbox_turns AS t
  CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id OFFSET 0) AS l
  CROSS JOIN LATERAL (
    SELECT * FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
    WHERE r.turn_id = t.turn_id AND r.lane_position <= t.last_position OFFSET 0) AS r
  WHERE t.turn_id = ANY (p_turn_ids) AND t.epoch = p_epoch AND r.claimed_by = p_worker_id;
  v_count := COALESCE(cardinality(v_own.ids), 0);
  IF v_count > 0 THEN
    PERFORM outbox.release_outbox_leases(p_worker_id, v_own.ids, v_own.tokens, 0);
  END IF;
  v_lost := ARRAY(SELECT t.turn_id FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (p_turn_ids) AND t.worker_id IS NOT NULL);
  RETURN v_count + outbox.requeue_batch(v_lost, p_worker_id);
END
$$;
COMMENT ON FUNCTION outbox.return_batch(text, bigint, bigint[]) IS 'Gives back what is left of a batch, and returns how many rows that are.';
