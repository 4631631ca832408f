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
DECLARE
  v_tuples tid[];
  v_lanes  bigint[];
BEGIN
  SELECT array_agg(d.tuple ORDER BY d.due_at, d.turn_id), array_agg(d.lane_id), count(*), min(d.due_at),
         (array_agg(d.due_at ORDER BY d.due_at DESC, d.turn_id DESC))[1], (array_agg(d.turn_id ORDER BY d.due_at DESC, d.turn_id DESC))[1]
  INTO v_tuples, v_lanes, looked_at, first_due, last_due, last_turn
  FROM (
    SELECT t.tuple, t.lane_id, t.due_at, t.turn_id
    FROM unnest(p_rail_types) AS r (rail_type)
    CROSS JOIN LATERAL (
      SELECT t.ctid AS tuple, t.lane_id, t.due_at, t.turn_id FROM outbox.payment_outbox_turns AS t
      WHERE t.worker_id IS NULL AND t.rail_type = r.rail_type AND t.shard = p_shard
        AND (t.due_at, t.turn_id) > (p_after_due, p_after_turn) AND t.due_at <= p_now
        AND (p_tenant_id IS NULL OR t.tenant_id = p_tenant_id)
      ORDER BY t.due_at, t.turn_id LIMIT p_lanes) AS t
    ORDER BY t.due_at, t.turn_id LIMIT p_lanes) AS d;

  v_lanes := ARRAY(
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l
    WHERE l.lane_id = ANY (v_lanes)
    FOR NO KEY UPDATE SKIP LOCKED);
  -- A turn that was taken meanwhile is gone and drops out here: holding both locks makes the lane ours.
  turn_ids := ARRAY(
    SELECT t.turn_id FROM outbox.payment_outbox_turns AS t
    WHERE t.ctid = ANY (v_tuples) AND t.lane_id = ANY (v_lanes)
    FOR NO KEY UPDATE SKIP LOCKED);
END
$$;
COMMENT ON FUNCTION outbox.pick_lanes(text[], uuid, timestamptz, timestamptz, bigint, integer, smallint) IS 'Locks the lanes that have been due longest and that nobody else is working on.';
