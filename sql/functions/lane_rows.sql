-- Not a definer function and not pinned, so that the planner can fold it into the caller and stop
-- at the caller's LIMIT. Each half starts its scan with NULL, and so reads nothing, when the lane
-- is of the other kind.
CREATE OR REPLACE FUNCTION outbox.lane_rows(
  p_participant_id text, p_rail_type text, p_solo_sequence_id bigint, p_from_sequence_id bigint
) RETURNS TABLE (tuple tid, outbox_id uuid, sequence_id bigint, next_attempt_at timestamptz,
                 claimed_by text, claimed_at timestamptz, lease_token uuid, lease_expires_at timestamptz, turn_id bigint)
LANGUAGE sql STABLE
AS $$
  SELECT p.ctid, p.outbox_id, p.sequence_id, p.next_attempt_at, p.claimed_by, p.claimed_at, p.lease_token, p.lease_expires_at, p.turn_id
  FROM outbox.payment_outbox_pending AS p
  WHERE p.dead_letter_of IS NULL
    AND p.participant_id = CASE WHEN p_rail_type <> 'dlq' THEN p_participant_id END
    AND p.sequence_id >= GREATEST(p_from_sequence_id, p_solo_sequence_id)
    AND p.sequence_id <= CASE WHEN p_solo_sequence_id = 0 THEN 9223372036854775807 ELSE p_solo_sequence_id END
    AND p.rail_type = p_rail_type
    AND p.solo = (p_solo_sequence_id <> 0)
  UNION ALL
  SELECT p.ctid, p.outbox_id, p.sequence_id, p.next_attempt_at, p.claimed_by, p.claimed_at, p.lease_token, p.lease_expires_at, p.turn_id
  FROM outbox.payment_outbox_pending AS p
  WHERE p.dead_letter_of IS NOT NULL
    AND p.participant_id = CASE WHEN p_rail_type = 'dlq' THEN p_participant_id END
$$;
COMMENT ON FUNCTION outbox.lane_rows(text, text, bigint, bigint) IS 'The pending rows of a lane, from a sequence number on (dead letters: all of them, because they do not arrive in order).';
