-- The index leads to what is out of place: -1 on a rail that has shards, or a number beyond what it has.
CREATE OR REPLACE FUNCTION outbox.place_lanes(p_rail_type text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_shards integer := (SELECT y.shards FROM outbox.payment_outbox_rail_policies AS y
                       WHERE y.rail_type = p_rail_type AND y.in_force AND y.delivery = 'exactly_once');
  v_lanes  bigint[] := ARRAY(
    SELECT t.lane_id FROM outbox.payment_outbox_turns AS t
    WHERE t.worker_id IS NULL AND t.rail_type = p_rail_type AND t.shard >= COALESCE(v_shards, 0)
    UNION ALL
    SELECT t.lane_id FROM outbox.payment_outbox_turns AS t
    WHERE t.worker_id IS NULL AND t.rail_type = p_rail_type AND t.shard = -1 AND v_shards IS NOT NULL);
BEGIN
  IF cardinality(v_lanes) = 0 THEN
    RETURN;
  END IF;
  -- Whoever holds a lane meanwhile gives it its next turn: that one is found at the next look.
  v_lanes := ARRAY(
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = ANY (v_lanes)
    ORDER BY l.participant_id, l.rail_type, l.solo_sequence_id FOR NO KEY UPDATE SKIP LOCKED);
  UPDATE outbox.payment_outbox_lanes AS l SET shard = outbox.shard_of(l.participant_id, l.rail_type) WHERE l.lane_id = ANY (v_lanes);
  UPDATE outbox.payment_outbox_turns AS t SET shard = l.shard
  FROM outbox.payment_outbox_lanes AS l
  WHERE l.lane_id = ANY (v_lanes) AND t.lane_id = l.lane_id AND t.worker_id IS NULL;
END
$$;
COMMENT ON FUNCTION outbox.place_lanes(text) IS 'Puts the waiting lanes of a rail into the shards that its policy says: after a change of policy, and for what was enqueued by a transaction that had not seen it.';
