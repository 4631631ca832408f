CREATE OR REPLACE VIEW outbox.outbox_operational_status AS
SELECT p.outbox_id, p.tenant_id, p.instruction_id, p.participant_id, p.sequence_id, p.idempotency_key, p.rail_type,
       p.attempt_count, p.created_at, p.next_attempt_at, p.claimed_by, p.claimed_at, p.lease_expires_at, p.replay_of, p.dead_letter_of,
       a.state AS last_state, a.attempt_no AS last_attempt_no, a.error_code AS last_error_code, a.completed_at AS last_completed_at,
       EXTRACT(epoch FROM clock_timestamp() - p.claimed_at) AS lease_age_seconds,
       GREATEST(p.next_attempt_at - clock_timestamp(), interval '0') AS time_to_due,
       CASE WHEN p.lease_expires_at <= clock_timestamp() THEN 'lease expired'
            WHEN p.lease_token IS NOT NULL THEN 'leased'
            WHEN l.halted_by IS NOT NULL THEN 'halted'
            WHEN l.paused_at IS NOT NULL OR (p.solo AND m.paused_at IS NOT NULL) THEN 'paused'
            WHEN h.blocked THEN 'blocked'
            WHEN p.next_attempt_at > clock_timestamp() THEN 'delayed'
            ELSE 'due' END AS derived_state
FROM outbox.payment_outbox_pending AS p
LEFT JOIN outbox.payment_outbox_lanes AS l
  ON l.participant_id = p.participant_id AND l.rail_type = p.rail_type
 AND l.solo_sequence_id = CASE WHEN p.solo THEN p.sequence_id ELSE 0 END
LEFT JOIN outbox.payment_outbox_lanes AS m
  ON m.participant_id = p.participant_id AND m.rail_type = p.rail_type AND m.solo_sequence_id = 0
LEFT JOIN LATERAL (
  SELECT t.state, t.attempt_no, t.error_code, t.completed_at FROM outbox.payment_outbox_attempts AS t
  WHERE t.outbox_id = p.outbox_id ORDER BY t.attempt_no DESC LIMIT 1) AS a ON p.attempt_count > 0
-- An earlier row of the lane that waits, or is in flight, holds this one up.
LEFT JOIN LATERAL (
  SELECT true AS blocked FROM outbox.payment_outbox_pending AS e
  WHERE e.participant_id = p.participant_id AND e.rail_type = p.rail_type AND NOT e.solo AND NOT p.solo
    AND e.lane_position < p.lane_position
    AND (e.lease_token IS NOT NULL OR e.next_attempt_at > clock_timestamp())
  LIMIT 1) AS h ON true;
COMMENT ON VIEW outbox.outbox_operational_status IS 'Each pending row with its latest attempt and what it waits for: due, delayed, leased, lease expired, blocked behind an earlier row, paused or halted.';
