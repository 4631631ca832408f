-- The operator answers for what cannot be known: what was under way is sent again, and what the topics
-- hold so far is taken as known.
CREATE OR REPLACE FUNCTION outbox.resume_outbox_shard(p_rail_type text, p_shard smallint, p_actor text, p_reason text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_rows integer;
BEGIN
  PERFORM outbox.check_actor(p_actor, p_reason);
  PERFORM FROM outbox.payment_outbox_shards AS s
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard
    AND (s.halted_at IS NOT NULL OR (NOT s.ready AND EXISTS (
      SELECT FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = p_rail_type AND t.shard = p_shard AND t.batch IS NOT NULL)))
  FOR NO KEY UPDATE OF s;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'shard % of rail_type % is not halted, and no batch of it waits to be decided', COALESCE(p_shard::text, 'null'), COALESCE(quote_literal(p_rail_type), 'null')
      USING ERRCODE = 'P7016';
  END IF;
  v_rows := outbox.requeue_batch(outbox.lock_batch(p_rail_type, p_shard), left('operator:' || p_actor, 70));
  -- Batch 0 without offsets is a shard that was never used, or a database that has forgotten it: everything is read then.
  UPDATE outbox.payment_outbox_shards AS s SET halted_at = NULL, halted_reason = NULL, offsets = '{}', batch = GREATEST(s.batch, 1)
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard;
  PERFORM outbox.log_event('SHARD_RESUMED', p_actor, p_reason, NULL, p_rail_type, '{}', jsonb_build_object('shard', p_shard, 'requeued', v_rows));
  RETURN v_rows;
END
$$;
COMMENT ON FUNCTION outbox.resume_outbox_shard(text, smallint, text, text) IS 'An operator lets a shard go on that is halted, or whose owner cannot find out what became of its batch: the rows of its batch are sent again, and may arrive twice. Returns how many.';
