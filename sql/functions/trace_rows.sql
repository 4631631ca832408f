-- Without a scan: a key leads to its first row, the ledger's instruction index to what is finished,
-- a failure to its replay and a FAILED row to its dead letter.
CREATE OR REPLACE FUNCTION outbox.trace_rows(p_instruction_id text, p_idempotency_key text) RETURNS uuid[]
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
  WITH finished AS (
    SELECT DISTINCT a.outbox_id FROM outbox.payment_outbox_attempts AS a
    WHERE a.instruction_id = p_instruction_id AND (p_idempotency_key IS NULL OR a.idempotency_key = p_idempotency_key))
  SELECT COALESCE(array_agg(i.outbox_id), '{}') FROM (
    SELECT n.outbox_id FROM finished AS n
    UNION SELECT k.outbox_id FROM outbox.payment_outbox_keys AS k
      WHERE k.instruction_id = p_instruction_id AND (p_idempotency_key IS NULL OR k.idempotency_key = p_idempotency_key)
    UNION SELECT f.replay_outbox_id FROM finished AS n JOIN outbox.payment_outbox_failures AS f ON f.outbox_id = n.outbox_id
      WHERE f.replay_outbox_id IS NOT NULL
    UNION SELECT p.outbox_id FROM finished AS n JOIN outbox.payment_outbox_pending AS p ON p.dead_letter_of = n.outbox_id) AS i
$$;
COMMENT ON FUNCTION outbox.trace_rows(text, text) IS 'The rows of an instruction, or of one of its keys: the first, its replays and its dead letters.';
