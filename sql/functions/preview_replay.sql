-- Reads the ledger once from the oldest of the rows on, because it has no index by participant.
CREATE OR REPLACE FUNCTION outbox.preview_replay(p_outbox_ids uuid[])
RETURNS TABLE (outbox_id uuid, participant_id text, rail_type text, sequence_id bigint, instruction_id text, error_code text, failed_at timestamptz,
               resolution text, first_tried_at timestamptz, first_tried_age_seconds bigint, halts_lane boolean, later_of_instruction bigint,
               later_delivered boolean, waiting_in_lane bigint)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 100
SET search_path = pg_catalog, pg_temp
AS $$
  WITH asked AS (
    SELECT f.*, a.instruction_id, a.idempotency_key FROM outbox.payment_outbox_failures AS f
    JOIN outbox.payment_outbox_attempts AS a ON a.outbox_id = f.outbox_id AND a.state = 'FAILED'
    WHERE f.outbox_id = ANY (p_outbox_ids)),
  delivered AS (
    SELECT DISTINCT ON (a.participant_id, a.rail_type) a.participant_id, a.rail_type, a.sequence_id AS last_sequence_id FROM outbox.payment_outbox_attempts AS a
    WHERE a.outbox_id > (SELECT i FROM unnest(p_outbox_ids) AS i ORDER BY i LIMIT 1) AND a.state = 'DISPATCHED'
      AND EXISTS (SELECT FROM asked AS f WHERE f.participant_id = a.participant_id AND f.rail_type = a.rail_type)
    ORDER BY a.participant_id, a.rail_type, a.sequence_id DESC)
  SELECT f.outbox_id, f.participant_id, f.rail_type, f.sequence_id, f.instruction_id, f.error_code, f.failed_at, f.resolution,
         t.first_tried_at, EXTRACT(epoch FROM outbox.clock() - t.first_tried_at)::bigint,
         EXISTS (SELECT FROM outbox.payment_outbox_lanes AS l
                 WHERE l.participant_id = f.participant_id AND l.rail_type = f.rail_type AND l.halted_by = f.outbox_id),
         (SELECT count(*) FROM outbox.payment_outbox_keys AS k
          WHERE k.instruction_id = f.instruction_id AND k.idempotency_key <> f.idempotency_key AND k.outbox_id > f.outbox_id),
         COALESCE(d.last_sequence_id > f.sequence_id, false),
         (SELECT count(*) FROM (SELECT FROM outbox.lane_rows(f.participant_id, f.rail_type, 0, 0) LIMIT 10000) AS r)
  FROM asked AS f
  -- The receiver counts from the first time that it saw the key, which every replay has kept.
  CROSS JOIN LATERAL (
    SELECT min(a.claimed_at) AS first_tried_at FROM outbox.payment_outbox_attempts AS a
    WHERE a.instruction_id = f.instruction_id AND a.idempotency_key = f.idempotency_key AND a.dead_letter_of IS NULL) AS t
  LEFT JOIN delivered AS d ON d.participant_id = f.participant_id AND d.rail_type = f.rail_type
  ORDER BY f.participant_id, f.sequence_id
$$;
COMMENT ON FUNCTION outbox.preview_replay(uuid[]) IS 'What an operator should know before FAILED rows are replayed, in the order in which to replay them: whether each halts its lane, whether later rows of its instruction exist or later rows of its lane were delivered, how many wait in the lane, and since when its key is known to the rail.';
