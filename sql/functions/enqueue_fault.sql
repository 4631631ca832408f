CREATE OR REPLACE FUNCTION outbox.enqueue_fault(
  p_instruction_id text, p_participant_id text, p_idempotency_key text, p_rail_type text,
  p_payload jsonb, p_headers jsonb, p_not_before timestamptz
) RETURNS text[]
LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
BEGIN
  -- Nearly every row is good: one look at everything, and the reason only where it is needed.
  IF outbox.enqueue_is_plain(p_instruction_id, p_participant_id, p_idempotency_key, p_rail_type, p_payload, p_headers, p_not_before) THEN
    RETURN NULL;
  END IF;
  RETURN CASE
    WHEN p_instruction_id IS NULL OR btrim(p_instruction_id) = '' THEN
      ARRAY['P7101', 'p_instruction_id is ' || CASE WHEN p_instruction_id IS NULL THEN 'null' ELSE 'empty' END || ': it must name the payment instruction']
    WHEN p_participant_id IS NULL OR btrim(p_participant_id) = '' THEN
      ARRAY['P7101', 'p_participant_id is ' || CASE WHEN p_participant_id IS NULL THEN 'null' ELSE 'empty' END || ': it must name the participant whose order is kept']
    WHEN p_idempotency_key IS NULL OR btrim(p_idempotency_key) = '' THEN
      ARRAY['P7101', 'p_idempotency_key is ' || CASE WHEN p_idempotency_key IS NULL THEN 'null' ELSE 'empty' END || ': it must name this request of the instruction']
    WHEN octet_length(p_instruction_id) > 512 OR p_instruction_id ~ '[[:cntrl:]]' THEN
      ARRAY['P7102', 'p_instruction_id must have at most 512 bytes and no control character']
    WHEN octet_length(p_participant_id) > 512 OR p_participant_id ~ '[[:cntrl:]]' THEN
      ARRAY['P7102', 'p_participant_id must have at most 512 bytes and no control character']
    WHEN octet_length(p_idempotency_key) > 512 OR p_idempotency_key ~ '[[:cntrl:]]' THEN
      ARRAY['P7102', 'p_idempotency_key must have at most 512 bytes and no control character']
    WHEN p_rail_type = 'dlq' THEN
      ARRAY['P7104', 'p_rail_type ''dlq'' is reserved: dead letters are made by a FAILED outcome, never enqueued']
    WHEN p_rail_type IS NULL OR p_rail_type !~ '^[a-z][a-z0-9_.-]{0,62}$' THEN
      ARRAY['P7103', 'p_rail_type ' || COALESCE(quote_literal(left(p_rail_type, 80)), 'null') || ' is not a rail name: a lower-case letter, then at most 62 of a-z 0-9 _ . -']
    WHEN p_payload IS NULL OR jsonb_typeof(p_payload) <> 'object' THEN
      ARRAY['P7105', 'p_payload must be a JSON object, not ' || COALESCE(CASE jsonb_typeof(p_payload) WHEN 'null' THEN 'JSON null' ELSE jsonb_typeof(p_payload) END, 'null')]
    WHEN p_headers IS NOT NULL AND (jsonb_typeof(p_headers) <> 'object' OR jsonb_path_exists(p_headers, 'strict $.* ? (@.type() != "string")', '{}', true)) THEN
      ARRAY['P7106', 'p_headers must be a JSON object whose values are strings']
    WHEN p_not_before IS NOT NULL AND NOT (p_not_before BETWEEN '2000-01-01 00:00:00+00' AND clock_timestamp() + interval '3660 days') THEN
      ARRAY['P7107', 'p_not_before ' || p_not_before || ' is absurd: it must lie between the year 2000 and ten years from now']
  END;
END
$$;
COMMENT ON FUNCTION outbox.enqueue_fault(text, text, text, text, jsonb, jsonb, timestamptz) IS 'What is wrong with a row that is to be enqueued, as {SQLSTATE, message}.';
