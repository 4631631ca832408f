CREATE OR REPLACE FUNCTION outbox.trace_of_rows(p_ids uuid[])
RETURNS TABLE (occurred_at timestamptz, what text, outbox_id uuid, participant_id text, rail_type text, sequence_id bigint, attempt_no integer,
               actor text, error_code text, rail_code text, rail_reference text, latency_ms integer, detail text, related_id uuid)
LANGUAGE sql STABLE SECURITY DEFINER ROWS 20
SET search_path = pg_catalog, pg_temp
AS $$
  -- Where a row came from: pending has it, or else its first attempt.
  SELECT r.created_at, CASE WHEN r.replay_of IS NOT NULL THEN 'enqueued as replay' WHEN r.dead_letter_of IS NOT NULL THEN 'dead letter' ELSE 'enqueued' END,
         r.outbox_id, r.participant_id, r.rail_type, r.sequence_id, NULL::integer, NULL, NULL, NULL, NULL, NULL::integer,
         r.detail, COALESCE(r.replay_of, r.dead_letter_of)
  FROM (
    SELECT DISTINCT ON (b.outbox_id) b.* FROM (
      SELECT p.outbox_id, p.participant_id, p.rail_type, p.sequence_id, p.created_at, p.replay_of, p.dead_letter_of,
             CASE WHEN p.lease_token IS NOT NULL THEN 'leased by ' || p.claimed_by ELSE 'pending' END AS detail
      FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = ANY (p_ids)
      UNION ALL
      SELECT a.outbox_id, a.participant_id, a.rail_type, a.sequence_id, a.created_at, a.replay_of, a.dead_letter_of, NULL
      FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = ANY (p_ids)) AS b
    ORDER BY b.outbox_id, b.detail NULLS LAST) AS r
  UNION ALL
  SELECT a.completed_at, a.state::text, a.outbox_id, a.participant_id, a.rail_type, a.sequence_id, a.attempt_no, a.worker_id,
         a.error_code, a.rail_code, a.rail_reference, a.latency_ms, a.error_message, NULL::uuid
  FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = ANY (p_ids)
$$;
COMMENT ON FUNCTION outbox.trace_of_rows(uuid[]) IS 'When these rows were enqueued, and each of their attempts.';
