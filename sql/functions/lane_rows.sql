-- Not a definer function and not pinned, so that the planner can fold it into the caller, walk the
-- index in order and stop at the caller's LIMIT. Whoever is called often switches bitmap scans off: with
-- statistics from before a lane grew, the planner would read the whole lane to find its head.
CREATE OR REPLACE FUNCTION outbox.lane_rows(
  p_participant_id text, p_rail_type text, p_solo_sequence_id bigint, p_from_position bigint
) RETURNS TABLE (tuple tid, outbox_id uuid, lane_position bigint, next_attempt_at timestamptz,
                 claimed_by text, claimed_at timestamptz, lease_token uuid, lease_expires_at timestamptz, turn_id bigint)
LANGUAGE sql STABLE
AS $$
  SELECT p.ctid, p.outbox_id, p.lane_position, p.next_attempt_at, p.claimed_by, p.claimed_at, p.lease_token, p.lease_expires_at, p.turn_id
  FROM outbox.payment_outbox_pending AS p
  WHERE p.participant_id = p_participant_id
    AND p.lane_position >= CASE WHEN p_rail_type = 'dlq' THEN -9223372036854775808 ELSE GREATEST(p_from_position, p_solo_sequence_id, 1) END
    AND p.lane_position <= CASE WHEN p_rail_type = 'dlq' THEN -1 WHEN p_solo_sequence_id = 0 THEN 9223372036854775807 ELSE p_solo_sequence_id END
    AND p.rail_type = p_rail_type
    AND p.solo = (p_solo_sequence_id <> 0)
$$;
COMMENT ON FUNCTION outbox.lane_rows(text, text, bigint, bigint) IS 'The pending rows of a lane, from a lane_position on; dead letters from the first, because rows of several rails may fail at the same time and commit in another order.';
