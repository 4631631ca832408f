-- The rows of locked lanes that a worker still holds, and which of them it asked about.
-- OFFSET 0: one look-up for each lane, whatever the planner thinks. To join whole tables would walk
-- over all that an old snapshot keeps from being cleaned away.
CREATE OR REPLACE FUNCTION outbox.held_rows(p_turn_ids bigint[], p_worker_id text, p_outbox_ids uuid[], p_lease_tokens uuid[], p_now timestamptz)
RETURNS TABLE (turn_id bigint, tuple tid, outbox_id uuid, lane_position bigint, unordered boolean, asked boolean)
LANGUAGE plpgsql SECURITY DEFINER ROWS 500
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  IF cardinality(p_outbox_ids) IS DISTINCT FROM cardinality(p_lease_tokens) OR p_outbox_ids IS NULL THEN
    RAISE EXCEPTION 'p_outbox_ids and p_lease_tokens must be arrays of the same length' USING ERRCODE = 'P7116';
  END IF;
  IF cardinality(p_outbox_ids) > 10000 THEN
    RAISE EXCEPTION 'p_outbox_ids has % rows: it must have at most 10000', cardinality(p_outbox_ids) USING ERRCODE = 'P7110';
  END IF;
  IF array_position(p_outbox_ids, NULL) IS NOT NULL OR array_position(p_lease_tokens, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'p_outbox_ids and p_lease_tokens must not contain null' USING ERRCODE = 'P7116';
  END IF;
  RETURN QUERY
    SELECT t.turn_id, r.tuple, r.outbox_id, r.lane_position, COALESCE(y.ordering = 'none', false), a.outbox_id IS NOT NULL
    FROM outbox.payment_outbox_turns AS t
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id OFFSET 0) AS l
    LEFT JOIN outbox.payment_outbox_rail_policies AS y ON y.rail_type = l.rail_type AND y.in_force
    CROSS JOIN LATERAL (
      SELECT * FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
      WHERE r.turn_id = t.turn_id AND r.lane_position <= t.last_position OFFSET 0) AS r
    LEFT JOIN outbox.asked_outcomes(p_outbox_ids, p_lease_tokens, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL) AS a
      ON a.outbox_id = r.outbox_id AND a.lease_token = r.lease_token
    WHERE t.turn_id = ANY (p_turn_ids) AND r.claimed_by = p_worker_id AND r.lease_expires_at > p_now;
END
$$;
COMMENT ON FUNCTION outbox.held_rows(bigint[], text, uuid[], uuid[], timestamptz) IS 'The rows of locked lanes that a worker still holds, and which of them it asked about.';
