CREATE OR REPLACE FUNCTION outbox.restart_lane(p_lane_id bigint, p_head_position bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  INSERT INTO outbox.payment_outbox_turns (lane_id, rail_type, tenant_id, shard, due_at, head_position)
  SELECT l.lane_id, l.rail_type, l.tenant_id, l.shard, outbox.clock(), p_head_position
  FROM outbox.payment_outbox_lanes AS l
  WHERE l.lane_id = p_lane_id AND l.paused_at IS NULL AND l.halted_by IS NULL
    AND NOT EXISTS (SELECT FROM outbox.payment_outbox_turns AS t WHERE t.lane_id = l.lane_id)
$$;
COMMENT ON FUNCTION outbox.restart_lane(bigint, bigint) IS 'Gives a locked lane a turn now, unless it has one, is paused or is halted.';
