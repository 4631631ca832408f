CREATE OR REPLACE FUNCTION outbox.note_shard_offsets(p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint, p_offsets jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM outbox.hold_shard(p_worker_id, p_rail_type, p_shard, p_epoch);
  -- What is known already comes before anything that the batch under way has sent.
  UPDATE outbox.payment_outbox_shards AS s SET offsets = p_offsets || s.offsets WHERE s.rail_type = p_rail_type AND s.shard = p_shard;
END
$$;
COMMENT ON FUNCTION outbox.note_shard_offsets(text, text, smallint, bigint, jsonb) IS 'Where the topics end that a batch is about to use for the first time, so that whoever takes the shard over knows from where on to read.';
