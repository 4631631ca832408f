CREATE OR REPLACE FUNCTION outbox.halt_outbox_shard(p_worker_id text, p_rail_type text, p_shard smallint, p_epoch bigint, p_reason text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
  PERFORM outbox.hold_shard(p_worker_id, p_rail_type, p_shard, p_epoch);
  UPDATE outbox.payment_outbox_shards AS s
  SET owner = NULL, ready = false, lease_expires_at = outbox.clock(), halted_at = outbox.clock(), halted_reason = left(p_reason, 2000)
  WHERE s.rail_type = p_rail_type AND s.shard = p_shard;
  PERFORM outbox.log_event('SHARD_HALTED', p_worker_id, left(p_reason, 2000), NULL, p_rail_type, '{}', jsonb_build_object('shard', p_shard, 'epoch', p_epoch));
END
$$;
COMMENT ON FUNCTION outbox.halt_outbox_shard(text, text, smallint, bigint, text) IS 'Stops a shard of which nobody can say what became of its batch, until an operator decides.';
