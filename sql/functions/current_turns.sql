-- The shard comes before its lanes in the lock order. It is locked against a change of its owner, not
-- against its owner's other calls.
CREATE OR REPLACE FUNCTION outbox.current_turns(p_worker_id text, p_turn_ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM outbox.keep_commits();
  PERFORM FROM outbox.payment_outbox_shards AS s
  WHERE (s.rail_type, s.shard) IN (
    SELECT t.rail_type, t.shard FROM outbox.payment_outbox_turns AS t WHERE t.turn_id = ANY (p_turn_ids) AND t.batch IS NOT NULL)
  ORDER BY s.rail_type, s.shard FOR SHARE;
  RETURN ARRAY(
    SELECT t.turn_id FROM outbox.payment_outbox_turns AS t
    WHERE t.turn_id = ANY (p_turn_ids) AND (t.batch IS NULL OR EXISTS (
      SELECT FROM outbox.payment_outbox_shards AS s
      WHERE s.rail_type = t.rail_type AND s.shard = t.shard AND s.owner = p_worker_id AND s.epoch = t.epoch)));
END
$$;
COMMENT ON FUNCTION outbox.current_turns(text, bigint[]) IS 'Of these turns, those that are in no batch, or in one of a shard that the worker still owns in the epoch in which it claimed them.';
