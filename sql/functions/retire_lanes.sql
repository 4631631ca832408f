-- A lane that looked empty is deleted, unless a producer holds it: then a row is on its way, and
-- the lane is looked at again soon, less and less often.
CREATE OR REPLACE FUNCTION outbox.retire_lanes(p_lane_ids bigint[], p_head_positions bigint[], p_looks integer[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_now    timestamptz := outbox.clock();
  v_locked bigint[] := ARRAY(
    SELECT l.lane_id FROM outbox.payment_outbox_lanes AS l
    WHERE l.lane_id = ANY (p_lane_ids) FOR UPDATE SKIP LOCKED);
  v_gone   bigint[];
BEGIN
  -- Looked at again under the lock: a producer may have committed since the lane looked empty.
  WITH gone AS (
    DELETE FROM outbox.payment_outbox_lanes AS l
    USING unnest(p_lane_ids, p_head_positions) AS e (lane_id, head_position)
    WHERE l.lane_id = e.lane_id AND l.lane_id = ANY (v_locked)
      AND NOT EXISTS (SELECT FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, e.head_position) OFFSET 0)
    RETURNING l.lane_id)
  SELECT COALESCE(array_agg(g.lane_id), '{}') INTO v_gone FROM gone AS g;
  IF cardinality(v_gone) < cardinality(p_lane_ids) THEN
    INSERT INTO outbox.payment_outbox_turns (lane_id, rail_type, tenant_id, shard, due_at, head_position, empty_looks)
    SELECT l.lane_id, l.rail_type, l.tenant_id, l.shard,
           v_now + LEAST(0.01 * 2 ^ LEAST(e.looks, 8), 2) * interval '1 second', e.head_position, LEAST(e.looks + 1, 100)
    FROM unnest(p_lane_ids, p_head_positions, p_looks) AS e (lane_id, head_position, looks)
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = e.lane_id OFFSET 0) AS l
    WHERE e.lane_id <> ALL (v_gone);
  END IF;
END
$$;
COMMENT ON FUNCTION outbox.retire_lanes(bigint[], bigint[], integer[]) IS 'Deletes empty lanes; one that a producer holds is looked at again after 10 ms, doubling to 2 s.';
