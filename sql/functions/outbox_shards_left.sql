-- What other workers deliver is not waited for, nor what comes later: a drain would never end.
CREATE OR REPLACE FUNCTION outbox.outbox_shards_left(p_worker_id text, p_rail_type text, OUT waits boolean, OUT halted boolean)
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now timestamptz := outbox.clock();
BEGIN
  SELECT COALESCE(bool_or(s.halted_at IS NULL), false), COALESCE(bool_or(s.halted_at IS NOT NULL), false) INTO waits, halted
  FROM outbox.payment_outbox_shards AS s
  WHERE s.rail_type = p_rail_type
    AND (s.owner IS NULL OR s.owner = p_worker_id OR NOT EXISTS (
      SELECT FROM outbox.payment_outbox_workers AS w WHERE w.worker_id = s.owner AND w.seen_at > v_now - interval '3 seconds'))
    AND EXISTS (
      SELECT FROM outbox.payment_outbox_turns AS t
      WHERE t.rail_type = s.rail_type AND t.shard = s.shard
        -- Rows of a lost batch come back in a second.
        AND (t.batch IS NOT NULL OR (t.worker_id IS NULL AND t.due_at <= v_now + interval '1500 milliseconds')));
  waits := waits OR EXISTS (
    SELECT FROM outbox.payment_outbox_turns AS t
    WHERE t.worker_id IS NULL AND t.rail_type = p_rail_type AND t.shard = -1 AND t.due_at <= v_now);
END
$$;
COMMENT ON FUNCTION outbox.outbox_shards_left(text, text) IS 'Whether an exactly-once rail has rows, due now or in a moment or in a batch, in shards that no other live worker delivers, and whether it has some in shards that are halted.';
