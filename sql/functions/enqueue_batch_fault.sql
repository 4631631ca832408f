-- What is wrong with one element of a batch, before its values are given their types.
CREATE OR REPLACE FUNCTION outbox.enqueue_batch_fault(p_row jsonb) RETURNS text[]
LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_key text;
BEGIN
  IF jsonb_typeof(p_row) <> 'object' THEN
    RETURN ARRAY['P7108', 'a row must be a JSON object, not ' || jsonb_typeof(p_row)];
  END IF;
  v_key := (SELECT k FROM jsonb_object_keys(p_row) AS k
            WHERE k NOT IN ('instruction_id', 'participant_id', 'idempotency_key', 'rail_type', 'payload', 'headers', 'tenant_id', 'not_before')
            ORDER BY k LIMIT 1);
  IF v_key IS NOT NULL THEN
    RETURN ARRAY['P7108', format('unknown key %s: a row has instruction_id, participant_id, idempotency_key, rail_type, payload, headers, tenant_id and not_before', to_json(left(v_key, 80)))];
  END IF;
  FOREACH v_key IN ARRAY ARRAY['instruction_id', 'participant_id', 'idempotency_key', 'rail_type', 'tenant_id', 'not_before'] LOOP
    IF jsonb_typeof(p_row -> v_key) NOT IN ('string', 'null') THEN
      RETURN ARRAY['P7108', format('%s must be a JSON string, not %s', v_key, jsonb_typeof(p_row -> v_key))];
    END IF;
  END LOOP;
  IF p_row ->> 'tenant_id' !~* '^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$' THEN
    RETURN ARRAY['P7108', 'tenant_id must be a UUID'];
  END IF;
  IF p_row ->> 'not_before' IS NOT NULL AND outbox.try_timestamptz(p_row ->> 'not_before') IS NULL THEN
    RETURN ARRAY['P7107', 'p_not_before is not a timestamp: write it as 2030-01-31T12:00:00Z'];
  END IF;
  RETURN outbox.enqueue_fault(
    p_row ->> 'instruction_id', p_row ->> 'participant_id', p_row ->> 'idempotency_key', p_row ->> 'rail_type',
    p_row -> 'payload', NULLIF(p_row -> 'headers', 'null'), (p_row ->> 'not_before')::timestamptz);
END
$$;
COMMENT ON FUNCTION outbox.enqueue_batch_fault(jsonb) IS 'What is wrong with one element of a batch, as {SQLSTATE, message}.';
