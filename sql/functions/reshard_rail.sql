-- A shard keeps its number of batches and its offsets, also while the rail is delivered another way: the
-- register remembers them too.
CREATE OR REPLACE FUNCTION outbox.reshard_rail(p_rail_type text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_shards integer := (SELECT y.shards FROM outbox.payment_outbox_rail_policies AS y
                       WHERE y.rail_type = p_rail_type AND y.in_force AND y.delivery = 'exactly_once');
BEGIN
  UPDATE outbox.payment_outbox_shards AS s SET owner = NULL, ready = false, epoch = s.epoch + 1, lease_expires_at = outbox.clock()
  WHERE s.rail_type = p_rail_type;
  INSERT INTO outbox.payment_outbox_shards (rail_type, shard)
  SELECT p_rail_type, g FROM generate_series(0, v_shards - 1) AS g ON CONFLICT DO NOTHING;
  UPDATE outbox.payment_outbox_lanes AS l SET shard = outbox.shard_of(l.participant_id, l.rail_type) WHERE l.rail_type = p_rail_type;
  UPDATE outbox.payment_outbox_turns AS t SET shard = l.shard
  FROM outbox.payment_outbox_lanes AS l
  WHERE l.rail_type = p_rail_type AND t.lane_id = l.lane_id AND t.worker_id IS NULL AND t.shard <> l.shard;
END
$$;
COMMENT ON FUNCTION outbox.reshard_rail(text) IS 'Makes the shards of a rail whose policy has changed, and puts its lanes into them.';
