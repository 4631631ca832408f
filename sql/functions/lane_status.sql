-- The lanes are chosen first, from lanes and turns alone; only those that are shown are looked into.
CREATE OR REPLACE FUNCTION outbox.lane_status(p_participant_id text, p_rail_type text, p_waiting_only boolean, p_limit integer)
RETURNS TABLE (participant_id text, rail_type text, tenant_id uuid, solo_sequence_id bigint, state text, due_at timestamptz, worker_id text,
               pending_rows bigint, head_outbox_id uuid, head_sequence_id bigint, head_attempts integer, head_error_code text,
               paused_at timestamptz, paused_by text, paused_reason text, halted_by uuid)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 50
SET search_path = pg_catalog, pg_temp
AS $$
  WITH known AS (
    SELECT l.*, t.due_at, t.worker_id,
           CASE WHEN l.halted_by IS NOT NULL THEN 'halted'
                WHEN COALESCE(l.paused_at, m.paused_at) IS NOT NULL THEN 'paused'
                WHEN t.worker_id IS NOT NULL AND t.due_at <= c.now THEN 'lease expired'
                WHEN t.worker_id IS NOT NULL THEN 'leased'
                WHEN t.due_at > c.now THEN 'delayed'
                ELSE 'due' END AS state,
           COALESCE(l.paused_at, m.paused_at) AS stopped_at, COALESCE(l.paused_by, m.paused_by) AS stopped_by,
           COALESCE(l.paused_reason, m.paused_reason) AS stopped_reason
    FROM (SELECT outbox.clock() AS now) AS c CROSS JOIN outbox.payment_outbox_lanes AS l
    -- A row in a lane of its own waits with its participant's lane.
    LEFT JOIN outbox.payment_outbox_lanes AS m
      ON m.participant_id = l.participant_id AND m.rail_type = l.rail_type AND m.solo_sequence_id = 0 AND l.solo_sequence_id <> 0
    LEFT JOIN outbox.payment_outbox_turns AS t ON t.lane_id = l.lane_id
    WHERE (p_participant_id IS NULL OR l.participant_id = p_participant_id) AND (p_rail_type IS NULL OR l.rail_type = p_rail_type)),
  shown AS (
    SELECT k.* FROM known AS k
    WHERE NOT p_waiting_only OR k.state NOT IN ('due', 'leased')
    ORDER BY k.state <> 'halted', k.state <> 'paused', k.state <> 'lease expired', k.due_at, k.lane_id LIMIT p_limit)
  SELECT s.participant_id, s.rail_type, s.tenant_id, s.solo_sequence_id, s.state, NULLIF(s.due_at, 'infinity'), s.worker_id, n.pending_rows,
         h.outbox_id, h.sequence_id, h.attempt_count, a.error_code, s.stopped_at, s.stopped_by, s.stopped_reason, s.halted_by
  FROM shown AS s
  CROSS JOIN LATERAL (
    SELECT count(*) AS pending_rows FROM (
      SELECT FROM outbox.lane_rows(s.participant_id, s.rail_type, s.solo_sequence_id, 0) LIMIT 10000) AS r) AS n
  LEFT JOIN LATERAL (
    SELECT p.outbox_id, p.sequence_id, p.attempt_count FROM outbox.lane_rows(s.participant_id, s.rail_type, s.solo_sequence_id, 0) AS r
    JOIN outbox.payment_outbox_pending AS p ON p.outbox_id = r.outbox_id
    ORDER BY r.lane_position LIMIT 1) AS h ON true
  LEFT JOIN LATERAL (
    SELECT t.error_code FROM outbox.payment_outbox_attempts AS t
    WHERE t.outbox_id = h.outbox_id ORDER BY t.attempt_no DESC LIMIT 1) AS a ON h.attempt_count > 0
  ORDER BY s.state <> 'halted', s.state <> 'paused', s.state <> 'lease expired', s.due_at, s.lane_id
$$;
COMMENT ON FUNCTION outbox.lane_status(text, text, boolean, integer) IS 'Lanes and what they wait for, of one participant or rail or of all, stopped ones first: halted, paused, lease expired, delayed, leased or due. pending_rows is counted up to 10,000.';
