-- Whatever the shard sends next comes after these. Not while a batch is under way, of which something may come
-- before them; and not from an owner who knows another batch than we do, because what was lost is looked for
-- from the old ones on.
CREATE OR REPLACE FUNCTION outbox.renew_shard_offsets(
  p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint, p_batch bigint, p_offsets jsonb
) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM outbox.hold_shard(p_worker_id, p_rail_type, p_shard, p_epoch);
  UPDATE outbox.payment_outbox_shards AS s SET offsets = s.offsets || p_offsets
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard AND s.ready AND s.batch = p_batch
    AND NOT EXISTS (
      SELECT FROM outbox.payment_outbox_turns AS t WHERE t.rail_type = p_rail_type AND t.shard = p_shard AND t.batch IS NOT NULL);
END
$$;
COMMENT ON FUNCTION outbox.renew_shard_offsets(text, text, smallint, bigint, bigint, jsonb) IS 'Where the topics end while a shard stands still, so that whoever takes it over reads no more than it has to, and nothing that is gone.';
