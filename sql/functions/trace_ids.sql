CREATE OR REPLACE FUNCTION outbox.trace_ids(p_kind text, p_id text, p_limit integer) RETURNS uuid[]
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
  v_instruction_id  text;
  v_idempotency_key text;
BEGIN
  IF p_kind = 'instruction' THEN
    RETURN outbox.trace_rows(p_id, NULL);
  ELSIF p_kind = 'participant' THEN
    -- The ledger has no index by participant: this reads all of it. More rows than entries nobody needs.
    RETURN ARRAY(
      SELECT p.outbox_id FROM outbox.payment_outbox_pending AS p WHERE p.participant_id = p_id
      UNION SELECT a.outbox_id FROM outbox.payment_outbox_attempts AS a WHERE a.participant_id = p_id
      ORDER BY outbox_id DESC LIMIT p_limit);
  ELSIF p_kind IS DISTINCT FROM 'outbox' THEN
    RAISE EXCEPTION 'p_kind is %: it must be outbox, instruction or participant', COALESCE(quote_literal(p_kind), 'null') USING ERRCODE = 'P7122';
  END IF;
  IF p_id !~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN
    RETURN '{}'::uuid[];
  END IF;
  SELECT r.instruction_id, r.idempotency_key INTO v_instruction_id, v_idempotency_key FROM (
    SELECT p.instruction_id, p.idempotency_key FROM outbox.payment_outbox_pending AS p WHERE p.outbox_id = p_id::uuid
    UNION ALL SELECT a.instruction_id, a.idempotency_key FROM outbox.payment_outbox_attempts AS a WHERE a.outbox_id = p_id::uuid) AS r LIMIT 1;
  IF NOT FOUND THEN
    RETURN '{}'::uuid[];
  END IF;
  RETURN outbox.trace_rows(v_instruction_id, v_idempotency_key);
END
$$;
COMMENT ON FUNCTION outbox.trace_ids(text, text, integer) IS 'The rows that a trace is about: of one payment (whichever of its rows is named), of an instruction, or the newest of a participant.';
