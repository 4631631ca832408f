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
    SELECT p.outbox_id,
           -- A single loss is no suspicion yet, and two need two attempts.
           CASE WHEN p.attempt_count < 2 THEN 0 ELSE (
             SELECT count(*) FROM outbox.payment_outbox_attempts AS a
             WHERE a.outbox_id = p.outbox_id AND a.state = 'ZOMBIE_REQUEUE') END,
           -- It was sent after it was claimed, in an earlier attempt or as the row that it replays.
           (SELECT min(a.claimed_at) FROM outbox.payment_outbox_attempts AS a
            WHERE a.instruction_id = p.instruction_id AND a.idempotency_key = p.idempotency_key
              AND a.rail_type = p.rail_type AND a.state IN ('RETRYABLE', 'ZOMBIE_REQUEUE'))
    FROM unnest(p_outbox_ids) AS i (outbox_id)
    CROSS JOIN LATERAL (SELECT * FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = i.outbox_id OFFSET 0) AS p;
END
$$;
COMMENT ON FUNCTION outbox.earlier_attempts(uuid[]) IS 'What the ledger knows of pending rows: how often a worker was lost with each, and since when it may be with its rail under its key.';
