-- OFFSET 0: one look-up for each lane, whatever the planner thinks. To join whole tables would walk
-- over all that an old snapshot keeps from being cleaned away.
CREATE OR REPLACE FUNCTION outbox.requeue_expired(p_turn_ids bigint[], p_worker_id text, p_now timestamptz)
RETURNS TABLE (outbox_id uuid, participant_id text, rail_type text, sequence_id bigint, attempt_no integer, expired_worker_id text, lane_paused boolean)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  WITH expired AS MATERIALIZED (
    SELECT r.*, l.lane_id, y.last_no, y.zombies, COALESCE(o.ordering = 'none', false) AS unordered
    FROM outbox.payment_outbox_turns AS t
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_lanes AS l WHERE l.lane_id = t.lane_id OFFSET 0) AS l
    LEFT JOIN outbox.payment_outbox_rail_policies AS o ON o.rail_type = l.rail_type AND o.in_force
    CROSS JOIN LATERAL (
      SELECT * FROM outbox.lane_rows(l.participant_id, l.rail_type, l.solo_sequence_id, t.head_position) AS r
      WHERE r.turn_id = t.turn_id AND r.lane_position <= t.last_position OFFSET 0) AS r
    CROSS JOIN LATERAL (
      SELECT COALESCE(max(a.attempt_no), 0) AS last_no, count(*) FILTER (WHERE a.state = 'ZOMBIE_REQUEUE') AS zombies
      FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = r.outbox_id) AS y
    WHERE t.turn_id = ANY (p_turn_ids)),
  requeued AS (
    UPDATE outbox.payment_outbox_pending AS p
    SET claimed_by = NULL, claimed_at = NULL, lease_token = NULL, lease_expires_at = NULL, turn_id = NULL, shard = NULL, batch = NULL,
        attempt_count = GREATEST(p.attempt_count, x.last_no + 1), next_attempt_at = p_now + interval '1 second', solo = p.solo OR x.unordered
    FROM expired AS x WHERE p.ctid = x.tuple
    RETURNING p.*, x.lane_id, x.last_no, x.zombies, x.claimed_by AS old_worker, x.claimed_at AS old_claimed_at, x.lease_token AS old_token),
  entered AS (
    INSERT INTO outbox.payment_outbox_attempts (
      attempt_id, outbox_id, tenant_id, instruction_id, participant_id, sequence_id, idempotency_key, rail_type, payload, headers,
      attempt_no, state, claimed_at, completed_at, created_at, error_code, error_message, worker_id, lease_token, replay_of, dead_letter_of)
    SELECT outbox.uuidv7(), r.outbox_id, r.tenant_id, r.instruction_id, r.participant_id, r.sequence_id, r.idempotency_key, r.rail_type,
           r.payload, r.headers, r.last_no + 1, 'ZOMBIE_REQUEUE', r.old_claimed_at, p_now, r.created_at, 'LEASE_EXPIRED',
           'repaired by ' || p_worker_id, r.old_worker, r.old_token, r.replay_of, r.dead_letter_of
    FROM requeued AS r),
  poisoned AS (
    UPDATE outbox.payment_outbox_lanes AS l
    SET paused_at = p_now, paused_by = p_worker_id, paused_reason = 'LEASE_EXPIRED_REPEATEDLY'
    FROM (SELECT DISTINCT r.lane_id FROM requeued AS r WHERE r.zombies >= 4) AS z
    WHERE l.lane_id = z.lane_id AND l.paused_at IS NULL
    RETURNING l.lane_id, l.participant_id, l.rail_type),
  alarmed AS (
    INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, reason, participant_id, rail_type, outbox_ids)
    SELECT outbox.uuidv7(), 'LANE_PAUSED', p_now, p_worker_id, 'LEASE_EXPIRED_REPEATEDLY: a row came back five times, it may be killing its workers',
           z.participant_id, z.rail_type, ARRAY(SELECT r.outbox_id FROM requeued AS r WHERE r.lane_id = z.lane_id AND r.zombies >= 4)
    FROM poisoned AS z),
  logged AS (
    INSERT INTO outbox.payment_outbox_events (event_id, event_type, occurred_at, actor, outbox_ids)
    SELECT outbox.uuidv7(), 'LEASE_EXPIRED_REPAIRED', p_now, p_worker_id, array_agg(r.outbox_id)
    FROM requeued AS r HAVING count(*) > 0 AND (SELECT s.batch_events FROM outbox.payment_outbox_settings AS s))
  SELECT r.outbox_id, r.participant_id, r.rail_type, r.sequence_id, r.last_no + 1, r.old_worker,
         EXISTS (SELECT FROM poisoned AS z WHERE z.lane_id = r.lane_id)
  FROM requeued AS r ORDER BY r.participant_id, r.rail_type, r.sequence_id;
END
$$;
COMMENT ON FUNCTION outbox.requeue_expired(bigint[], text, timestamptz) IS 'Writes ZOMBIE_REQUEUE for the rows of expired, locked lanes and clears their leases.';
