-- Looks at the next p_lanes due turns after (p_after_due, p_after_turn), whoever has been due
-- longest first, and locks lane and turn of those that nobody else is working on.
CREATE OR REPLACE FUNCTION outbox.pick_lanes(
  p_rail_types text[], p_tenant_id uuid, p_now timestamptz, p_after_due timestamptz, p_after_turn bigint, p_lanes integer, p_shard smallint,
  OUT turn_ids bigint[], OUT looked_at bigint, OUT first_due timestamptz, OUT last_due timestamptz, OUT last_turn bigint
)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  WITH due AS MATERIALIZED (
    SELECT t.tuple, t.lane_id, t.due_at, t.turn_id
    FROM unnest(p_rail_types) AS r (rail_type)
    CROSS JOIN LATERAL (
      SELECT t.ctid AS tuple, t.lane_id, t.due_at, t.turn_id FROM outbox.payment_outbox_turns AS t
      WHERE t.worker_id IS NULL AND t.rail_type = r.rail_type AND t.shard = p_shard
        AND (t.due_at, t.turn_id) > (p_after_due, p_after_turn) AND t.due_at <= p_now
        AND (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id)
      ORDER BY t.due_at, t.turn_id LIMIT p_lanes) AS t
    ORDER BY t.due_at, t.turn_id LIMIT p_lanes),
  free AS (
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l
    WHERE l.lane_id = ANY (ARRAY(SELECT d.lane_id FROM due AS d))
    FOR NO KEY UPDATE SKIP LOCKED),
  -- A turn that was taken meanwhile is gone and drops out here: holding both locks makes the lane ours. One that was
  -- moved to another shard is found where it is now, so it is asked again what it has to be.
  ours AS (
    SELECT t.turn_id FROM outbox.payment_outbox_turns AS t
    WHERE t.ctid = ANY (ARRAY(SELECT d.tuple FROM due AS d)) AND t.lane_id = ANY (ARRAY(SELECT f.lane_id FROM free AS f))
      AND t.worker_id IS NULL AND t.shard = p_shard
    FOR NO KEY UPDATE SKIP LOCKED)
  SELECT ARRAY(SELECT o.turn_id FROM ours AS o), count(*), min(d.due_at), max(d.due_at),
         max(d.turn_id) FILTER (WHERE d.due_at = (SELECT max(e.due_at) FROM due AS e))
  INTO turn_ids, looked_at, first_due, last_due, last_turn
  FROM due AS d;
END
$$;
COMMENT ON FUNCTION outbox.pick_lanes(text[], uuid, timestamptz, timestamptz, bigint, integer, smallint) IS 'Locks the lanes that have been due longest and that nobody else is working on.';
