-- Opens every day of the ledger that is kept: whoever calls it for rows that were never tried would pay for that.
CREATE OR REPLACE FUNCTION outbox.earlier_attempts(p_outbox_ids uuid[])
RETURNS TABLE (outbox_id uuid, times_lost bigint, in_doubt_since timestamptz)
LANGUAGE plpgsql STABLE SECURITY DEFINER ROWS 500
SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
BEGIN
  IF cardinality(p_outbox_ids) = 0 THEN
    RETURN;
  END IF;
  RETURN QUERY
    SELECT p.outbox_id, COALESCE(own.last_no - own.survived_no, 0)::bigint,
           -- It was sent after it was claimed, in an earlier attempt or as the row that it replays. Only that one has to be
           -- looked for in every day of the ledger.
           CASE WHEN p.replay_of IS NULL THEN own.in_doubt_since ELSE (
             SELECT min(a.claimed_at) FROM outbox.payment_outbox_attempts AS a
             WHERE a.instruction_id = p.instruction_id AND a.idempotency_key = p.idempotency_key
               AND a.rail_type = p.rail_type AND a.state IN ('RETRYABLE', 'ZOMBIE_REQUEUE')) END
    FROM unnest(p_outbox_ids) AS i (outbox_id)
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = i.outbox_id OFFSET 0) AS p
    -- Attempts have numbers without a gap, and those of a pending row are retries and losses: what is behind the last
    -- retry, which its worker survived, was lost.
    CROSS JOIN LATERAL (
      SELECT max(a.attempt_no) AS last_no, COALESCE(max(a.attempt_no) FILTER (WHERE a.state <> 'ZOMBIE_REQUEUE'), 0) AS survived_no,
             min(a.claimed_at) AS in_doubt_since
      FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p.outbox_id) AS own;
END
$$;
COMMENT ON FUNCTION outbox.earlier_attempts(uuid[]) IS 'What the ledger knows of pending rows: how often in a row a worker was lost with each, and since when it may be with its rail under its key.';
