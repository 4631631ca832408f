CREATE OR REPLACE FUNCTION outbox.release_outbox_shard(p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM outbox.hold_shard(p_worker_id, p_rail_type, p_shard, p_epoch);
  -- A batch that is still under way keeps its rows: the next owner finds out what became of them.
  UPDATE outbox.payment_outbox_shards AS s SET owner = NULL, ready = false, lease_expires_at = outbox.clock()
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard;
END
$$;
COMMENT ON FUNCTION outbox.release_outbox_shard(text, text, smallint, bigint) IS 'Gives a shard up at once, without waiting for its lease.';
