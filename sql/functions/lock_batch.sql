-- The caller has locked the shard: lanes come after it, in their own order.
CREATE OR REPLACE FUNCTION outbox.lock_batch(p_rail_type text, p_shard smallint) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_turns bigint[] := ARRAY(
    SELECT t.turn_id FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = p_rail_type AND t.shard = p_shard AND t.batch IS NOT NULL);
BEGIN
  PERFORM FROM outbox.payment_outbox_lanes AS l
  WHERE l.lane_id = ANY (ARRAY(SELECT t.lane_id FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (v_turns)))
  ORDER BY l.participant_id, l.rail_type, l.solo_sequence_id FOR NO KEY UPDATE;
  RETURN v_turns;
END
$$;
COMMENT ON FUNCTION outbox.lock_batch(text, smallint) IS 'Locks the lanes of the batch that is under way in a shard, and returns their turns.';
