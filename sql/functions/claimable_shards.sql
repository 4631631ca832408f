-- In the order in which somebody has waited, so that a deep backlog gives one shard a large batch instead
-- of many a small one: a transaction costs the same whatever is in it.
CREATE OR REPLACE FUNCTION outbox.claimable_shards(
  p_worker_id text, p_rail_types text[], p_shards smallint[], p_epochs bigint[], p_batches bigint[], p_now timestamptz
) RETURNS TABLE (shard smallint, epoch bigint, batch bigint)
LANGUAGE plpgsql SECURITY DEFINER ROWS 16
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
  v_held smallint[];
BEGIN
  IF p_shards IS NULL THEN
    RETURN QUERY SELECT -1::smallint, NULL::bigint, NULL::bigint;
    RETURN;
  END IF;
  IF cardinality(p_rail_types) IS DISTINCT FROM 1 OR cardinality(p_epochs) IS DISTINCT FROM cardinality(p_shards)
     OR cardinality(p_batches) IS DISTINCT FROM cardinality(p_shards) THEN
    RAISE EXCEPTION 'a claim for shards names one rail in p_rail_types, and of each of p_shards the epoch in p_epochs and the last batch in p_batches'
      USING ERRCODE = 'P7116';
  END IF;
  PERFORM outbox.keep_commits();
  v_held := ARRAY(
    SELECT s.shard FROM outbox.payment_outbox_shards AS s JOIN unnest(p_shards, p_epochs, p_batches) AS a (shard, epoch, batch) ON a.shard = s.shard
    WHERE s.rail_type = p_rail_types[1] AND s.owner = p_worker_id AND s.epoch = a.epoch AND s.ready
      -- A database that has forgotten a batch would give its rows out again.
      AND s.batch = a.batch
      -- Those without work are left to whoever completes, renews or takes them.
      AND EXISTS (SELECT FROM outbox.payment_outbox_turns AS t
                  WHERE t.worker_id IS NULL AND t.rail_type = s.rail_type AND t.shard = s.shard AND t.due_at <= p_now OFFSET 0)
    ORDER BY s.shard FOR NO KEY UPDATE OF s SKIP LOCKED);
  RETURN QUERY
    SELECT s.shard, s.epoch, s.batch + 1
    FROM outbox.payment_outbox_shards AS s
    CROSS JOIN LATERAL (
      SELECT t.due_at FROM outbox.payment_outbox_turns AS t
      WHERE t.worker_id IS NULL AND t.rail_type = s.rail_type AND t.shard = s.shard AND t.due_at <= p_now
      ORDER BY t.due_at, t.turn_id LIMIT 1) AS d
    WHERE s.rail_type = p_rail_types[1] AND s.shard = ANY (v_held)
      -- One batch at a time: its rows have to be finished first.
      AND NOT EXISTS (SELECT FROM outbox.payment_outbox_turns AS u WHERE u.rail_type = s.rail_type AND u.shard = s.shard AND u.batch = s.batch)
    ORDER BY d.due_at;
END
$$;
COMMENT ON FUNCTION outbox.claimable_shards(text, text[], smallint[], bigint[], bigint[], timestamptz) IS 'Locks the shards that a worker owns in these epochs, whose last batch is the one that it knows of, and that can take another; without p_shards, the one place where the lanes of every other rail are.';
