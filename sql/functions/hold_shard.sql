CREATE OR REPLACE FUNCTION outbox.hold_shard(p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint)
RETURNS outbox.payment_outbox_shards
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_shard outbox.payment_outbox_shards;
BEGIN
  PERFORM outbox.check_worker(p_worker_id), outbox.keep_commits();
  SELECT s.* INTO v_shard FROM outbox.payment_outbox_shards AS s
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard FOR NO KEY UPDATE;
  IF NOT FOUND OR v_shard.owner IS DISTINCT FROM p_worker_id OR v_shard.epoch IS DISTINCT FROM p_epoch OR v_shard.halted_at IS NOT NULL THEN
    RAISE EXCEPTION 'shard % of rail_type % is not owned by % in epoch %', p_shard, quote_literal(p_rail_type), p_worker_id, p_epoch
      USING ERRCODE = 'P7014', HINT = 'Another worker has taken it over, or it is halted.';
  END IF;
  RETURN v_shard;
END
$$;
COMMENT ON FUNCTION outbox.hold_shard(text, text, smallint, bigint) IS 'Locks a shard for its owner; P7014 SHARD_LOST for everybody else, and for its owner of an older epoch.';
